import polars as pl
import pytest

from dpcml.data.planted import planted
from dpcml.errors import ParameterError
from dpcml.experiments.paper import METRICS, overall, published
from dpcml.experiments.report import markdown
from dpcml.experiments.runner import Row, Spec, read_spec, run, specs


@pytest.fixture
def spec(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    world = str(tmp_path / "world.csv")
    rows = (
        Row(world, "neighbours", "itemknn", parameters={"k": 20}),
        Row(world, "popular", "popularity"),
        Row(str(tmp_path / "missing.csv"), "nothing", "popularity"),
    )
    return Spec("small", "A small study", "About.", "text", (3, 5), 2, rows)


def test_runs_are_done_once_and_kept(spec, tmp_path):
    said: list[str] = []
    first = run(spec, tmp_path / "small.csv", say=said.append)
    assert first.height == 4
    assert {"split", "protocol", "version", "seed", "parameters", *METRICS} <= set(first.columns)
    assert len(said) == 6, "two runs of the missing file are reported and leave the others"
    assert any("missing.csv" in line for line in said)
    again: list[str] = []
    second = run(spec, tmp_path / "small.csv", say=again.append)
    assert len(again) == 2, "only the failed ones are tried again"
    assert second.drop("seconds").equals(first.drop("seconds"), null_equal=True)


def test_changed_settings_are_run_anew(spec, tmp_path):
    run(spec, tmp_path / "small.csv")
    other = Row(spec.rows[0].data, "neighbours", "itemknn", parameters={"k": 1})
    changed = Spec("small", "A small study", "About.", "text", (3, 5), 2, (other,))
    done = run(changed, tmp_path / "small.csv")
    assert done.filter(pl.col("label") == "neighbours")["parameters"].unique().to_list() == ['{"k": 1}']
    assert done.height == 4


def test_a_seed_decides_the_split(spec, tmp_path):
    done = run(spec, tmp_path / "small.csv")
    by_seed = done.group_by("seed").agg(pl.col("split").n_unique())
    assert by_seed["split"].to_list() == [1, 1], "models of one seed share the split"
    assert done["split"].n_unique() == 2


def test_tables_have_means_and_the_papers_figures():
    rows = (Row("steam-200k", "ours", "popularity", paper="DPCML2"),)
    spec = Spec("made", "Made up", "About.", "released", (3, 5), 2, rows)
    figures = [{"data": "steam-200k", "label": "ours", "model": "popularity", "parameters": "{}", "seed": seed,
                "version": "1", "protocol": "released", "seconds": 2.0, **dict.fromkeys(METRICS, value)}
               for seed, value in ((0, 0.30), (1, 0.32))]  # fmt: skip
    text = markdown(spec, pl.DataFrame(figures))
    assert "| ours | 2 | 31.00 ± 1.41 |" in text
    assert "| the paper's DPCML2 | | 29.88 |" in text
    assert "| difference | | **+1.12** |" in text
    assert "-20.95" in text, "MRR of 0.5195 in the paper"


def test_every_spec_is_sound():
    assert specs()
    for name in specs():
        spec = read_spec(name)
        assert spec.rows
        for row in spec.rows:
            assert row.paper is None or published(row.data, row.paper)
    with pytest.raises(ParameterError, match="did you mean 'quality'"):
        read_spec("qualty")


def test_the_papers_table_is_whole():
    assert len(overall()) >= 3 * 16
    assert all(set(row) == set(METRICS) for row in overall().values())
    with pytest.raises(ParameterError, match="did you mean 'DPCML2'"):
        published("steam-200k", "DPCML3")
