import subprocess
import sys

import numpy as np
import pytest

from dpcml import BPR, IALS, load, save
from dpcml.utils.errors import MissingExtraError, ParameterError

pytest.importorskip("implicit")
BOTH = pytest.mark.parametrize("kind", [IALS, BPR])


@pytest.fixture(scope="module")
def parts(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


@BOTH
def test_the_seed_matters_and_nothing_else_does(kind, parts):
    first = kind(dim=4, epochs=4).fit(parts.train)
    np.random.seed(5)  # noqa: NPY002 (a stranger's)
    again, other = kind(dim=4, epochs=4).fit(parts.train), kind(dim=4, epochs=4, random_state=1).fit(parts.train)
    assert first.item_factors_.tobytes() == again.item_factors_.tobytes()
    assert first.item_factors_.tobytes() != other.item_factors_.tobytes()


@BOTH
def test_the_best_state_on_the_validation_part_is_kept(kind, parts):
    seen = []
    model = kind(dim=12, l2=1e-3, epochs=30, validate_every=1, patience=3)
    model.fit(parts.train, parts.valid, callbacks=[lambda history: seen.append(history.epochs[-1].validation)])
    best = model.history_.best
    assert len(seen) <= best.number + 3
    assert best.validation == max(seen)
    again = kind(**{**model.get_params(), "epochs": best.number}).fit(parts.train)
    assert again.score(np.arange(60)).tobytes() == model.score(np.arange(60)).tobytes()


@BOTH
def test_loaded_it_scores_without_implicit(kind, parts, tmp_path):
    save(kind(dim=4, epochs=3).fit(parts.train), tmp_path / "m")
    code = """
import sys
sys.modules["implicit"] = None  # an import of it fails
from dpcml import load
model = load(sys.argv[1])
print(model.recommend("user-3", n=2)[0].tolist(), model.history_.epochs[-1].number)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True, check=True)
    ids = load(tmp_path / "m").recommend("user-3", n=2)[0].tolist()
    assert done.stdout.strip() == f"{ids} 3"


@BOTH
def test_without_implicit_there_is_a_word_on_how_to_get_it(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit", None)
    with pytest.raises(MissingExtraError, match=r"implicit is not installed: pip install 'dpcml\[peers\]'"):
        kind().fit(np.eye(3))


def test_models_are_known_without_an_import_of_implicit():
    code = "import sys; from dpcml.models import create; create('ials'); print('implicit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@BOTH
@pytest.mark.parametrize(
    ("name", "value"), [("dim", 0), ("epochs", 0), ("validate_every", 0), ("patience", 0), ("random_state", -1)]
)
def test_bad_parameters(kind, name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        kind(**{name: value})


@BOTH
def test_an_unknown_metric_is_refused_before_training(kind):
    with pytest.raises(ParameterError, match="metric"):
        kind(metric="P")


def test_validation_has_the_threads_that_were_asked_for(parts, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "dpcml.evaluation.ranks.over_rows", lambda work, n, threads: (asked.append(threads), work(0, n))
    )
    IALS(dim=4, epochs=1, n_threads=1).fit(parts.train, parts.valid)
    assert asked
    assert set(asked) == {1}
