"""Results carry what made them: other code, settings or data are other results."""

import polars as pl
import pytest

from dpcml.data.synthetic import planted
from dpcml.paper import fingerprint
from dpcml.paper.run_store import RunStore
from dpcml.paper.runs import model_jobs, run_jobs
from dpcml.paper.spec import Spec
from dpcml.paper.studies import write_study


@pytest.fixture
def world(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    return str(tmp_path / "world.csv")


@pytest.fixture
def spec(world):
    rows = (
        {"data": world, "label": "neighbours", "model": "itemknn"},
        {"data": world, "label": "p", "model": "popularity"},
    )
    return Spec("small", "A small study", "About.", "text", (3, 5), 2, rows)


def run(spec, tmp_path):
    said: list[str] = []
    store = run_jobs(model_jobs(spec), tmp_path / "small.csv", said.append)
    return store, said


def test_comments_and_docstrings_are_no_code():
    one = 'def f(x):\n    """Return x."""\n    return x  # why\n'
    assert fingerprint.bare_code(one) == "def f(x):\n    return x"
    assert fingerprint.bare_code(one) != fingerprint.bare_code(one.replace("return x  #", "return -x  #"))
    assert fingerprint.bare_code('x = "# no comment"') == 'x = "# no comment"'


def test_the_code_of_a_model_is_what_it_is_trained_by():
    engine = set(fingerprint.sources_of("dpcml.models.dpcml"))
    assert {"dpcml.training.samplers", "dpcml.kernels.simd", "dpcml.kernels.optimizer", "dpcml.training.init"} <= engine
    simple = fingerprint.sources_of("dpcml.models.ease")
    assert "dpcml.models.ease" in simple
    assert "dpcml.training.engine" not in simple
    assert "dpcml.training.samplers" in fingerprint.sources_of("dpcml.models.neural.ncf")


def test_every_run_has_a_fingerprint_and_is_skipped_while_it_fits(spec, tmp_path, monkeypatch):
    store, _ = run(spec, tmp_path)
    kept = store.done["fingerprint"].to_list()
    assert all(one.count("-") == 3 for one in kept)
    assert len({fingerprint.making(one) for one in kept}) == 2, "two rows"
    assert len(set(kept)) == 4, "two splits of each"
    assert run(spec, tmp_path)[1] == []
    code = fingerprint.model_code
    monkeypatch.setattr(fingerprint, "model_code", lambda model: "new" if model == "itemknn" else code(model))
    again = run(spec, tmp_path)[1]
    assert len(again) == 2
    assert all("neighbours" in line for line in again)


def test_other_data_under_the_same_name_are_run_anew(spec, world, tmp_path):
    run(spec, tmp_path)
    planted(120, 80, seed=2).write_csv(world)
    assert len(run(spec, tmp_path)[1]) == 4


def test_results_of_an_earlier_version_are_shown_and_not_finished(spec, tmp_path):
    store, _ = run(spec, tmp_path)
    store.done.drop("fingerprint").write_csv(store.path)
    text = write_study(spec, tmp_path)
    assert "Made by an earlier version of the code" in text
    assert "all rows" in text
    assert "| neighbours | 2 |" in text
    assert not any(RunStore(store.path).has(job) for job in model_jobs(spec))
    run(spec, tmp_path)
    assert "earlier version" not in write_study(spec, tmp_path)


def test_a_row_of_different_makings_is_left_out_and_says_how_to_run_it_again(spec, tmp_path):
    store, _ = run(spec, tmp_path)
    old = (pl.col("label") == "neighbours") & (pl.col("seed") == 1)
    mixed = pl.when(old).then(pl.lit(None)).otherwise(pl.col("fingerprint")).alias("fingerprint")
    store.done.with_columns(mixed).write_csv(store.path)
    text = write_study(spec, tmp_path)
    assert "**Left out**: *neighbours*" in text
    assert "seed 1 by an earlier version" in text
    assert '--label "neighbours"`' in text
    assert "| neighbours |" not in text
    assert "| p | 2 |" in text
    run(spec, tmp_path)
    assert "Left out" not in write_study(spec, tmp_path)
