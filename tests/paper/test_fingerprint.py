"""Results carry what made them: other code, settings or data are other results."""

import polars as pl
import pytest

from dpcml.data.synthetic import planted
from dpcml.paper import fingerprint, reached_code
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


A, B, C = "dpcml.kernels.a", "dpcml.kernels.b", "dpcml.kernels.c"
FILES = {
    A: """
from dpcml.kernels.b import RULES, Space, helper

class Base:
    def fit(self, x):
        return self._learn(helper(x))

    def recommend(self, n):
        return n

class Model(Base):
    space: ClassVar[Space] = Space()
    rule: str = "twice"

    def _check(self):
        pass

    def _learn(self, x):
        return RULES[self.rule](self.space.project(x))
""",
    B: """
RULES = {}

def helper(x: int) -> int:
    '''Return one more.'''
    return x + 1  # why

def unused(x):
    return x

@RULES.register("twice")
def twice(x):
    return 2 * x

def _add(name, rule):
    RULES.add(name, rule)

_add("cube", lambda x: x ** 3)
for _power in (4, 5):
    RULES.add(_power, lambda x: x ** _power)

class Space:
    def project(self, x):
        return abs(x)
""",
    C: "",
}


def hash_of(monkeypatch, files, root=(A, "Model")):
    monkeypatch.setattr(reached_code, "_source", lambda module: reached_code.parse_source(files[module]))
    return reached_code.code_hash([root])


def edited(module, old, new):
    assert old in FILES[module]
    return {**FILES, module: FILES[module].replace(old, new)}


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (B, "x + 1", "x + 2"),  # a function that is called
        (B, "2 * x", "3 * x"),  # one that is found by name in a registry
        (B, "x ** 3", "x ** 6"),  # one that a function adds to it
        (B, "(4, 5)", "(4, 6)"),  # one that a loop adds to it
        (B, "abs(x)", "x"),  # a method of an object that the class holds
        (A, "RULES[self.rule](self", "(self"),
        (A, "self._learn(helper(x))", "helper(x)"),  # a method of the base class
    ],
)
def test_other_code_of_a_run_is_another_hash(monkeypatch, module, old, new):
    assert hash_of(monkeypatch, edited(module, old, new)) != hash_of(monkeypatch, FILES)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (B, "# why", "# because"),
        (B, "Return one more.", "Add one."),
        (B, "x: int) -> int", "x)"),
        (B, "def unused(x):\n    return x", "def unused(x):\n    return -x"),
        (A, "return n", "return n + 1"),  # a method that no run calls
        (A, 'rule: str = "twice"', 'rule: str = "cube"'),  # a setting, which has a hash of its own
    ],
)
def test_code_beside_it_comments_and_types_do_not_count(monkeypatch, module, old, new):
    assert hash_of(monkeypatch, edited(module, old, new)) == hash_of(monkeypatch, FILES)


def test_code_that_moves_to_another_file_or_class_is_the_same_code(monkeypatch):
    moved = "def helper(x):\n    return x + 1\n"
    files = edited(
        A,
        "from dpcml.kernels.b import RULES, Space, helper",
        "from dpcml.kernels.b import RULES, Space\nfrom dpcml.kernels.c import helper",
    )
    files |= {B: FILES[B].replace("def helper", "def other"), C: moved}
    assert hash_of(monkeypatch, files) == hash_of(monkeypatch, FILES)
    split = edited(
        A, "class Model(Base):\n", "class Middle(Base):\n    def more(self):\n        pass\n\nclass Model(Middle):\n"
    )
    assert hash_of(monkeypatch, split) == hash_of(monkeypatch, FILES)


def test_a_run_of_the_engine_reaches_sampling_optimizer_starts_and_ranks():
    found = " ".join(reached_code.reached([("dpcml.models.dpcml", "DPCML"), fingerprint.RUN]))
    for name in ("sample_candidates", "select_hardest", "adam", "cluster_users", "eigenvectors", "rank_counts",
                 "average_precision", "precision", "ndcg", "_mrr", "train_and_measure", "alias_table",
                 "nearest_scores"):  # fmt: skip
        assert f"def {name}(" in found, name
    assert "NO_NAN = " in found, "flags of the compiler"
    assert "first_hit" in found, "rules of the protocols"
    for name in ("recommend", "explain", "save", "similar_items", "kernel_cache_folder"):
        assert f"def {name}(" not in found, name
    assert "def sample_candidates(" not in " ".join(reached_code.reached([("dpcml.models.ease", "EASE")]))


def test_a_run_of_a_neural_model_reaches_its_space_and_its_histories():
    found = " ".join(reached_code.reached([("dpcml.models.neural.ncf", "GMF"), fingerprint.RUN]))
    assert "def cross_entropy(" in found
    assert "def hinge(" not in found
    found = " ".join(reached_code.reached([("dpcml.models.neural.hlr", "HLR"), fingerprint.RUN]))
    for name in ("hinge", "histories", "_pairs", "_score_pairs", "steep", "translated_to_all"):
        assert f"def {name}(" in found, name


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


def test_a_run_of_a_blend_reaches_the_bonus_of_small_categories():
    found = " ".join(reached_code.reached([("dpcml.models.blend", "Blend"), fingerprint.RUN]))
    for name in ("blend_scores", "minority_scores", "category_shares", "find_weights"):
        assert f"def {name}(" in found, name
    assert "FAMILIAR = " in found
