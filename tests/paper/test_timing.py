import sys

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.models import MODELS, create
from dpcml.models.presets import PRESETS
from dpcml.paper.study_types.timing import fit_memory, method_names, time_methods
from dpcml.utils.errors import ParameterError


@pytest.fixture
def small() -> Interactions:
    return Interactions.from_csr(np.random.default_rng(0).random((40, 60)) < 0.2)


def test_every_model_and_preset_is_timed_by_default():
    assert set(method_names()) == {*MODELS, *PRESETS}
    assert len(method_names()) == len(set(method_names()))


def test_epochs_and_fits_are_told_apart(small):
    names = ["popularity", "ease", "unis", "dpcml2"]
    found = time_methods(small, methods=names, epochs=2, repeats=2)
    assert {one["name"]: one["per"] for one in found["methods"]} == {
        "popularity": "fit", "ease": "fit", "unis": "epoch", "dpcml2": "epoch",
    }  # fmt: skip
    by_name = {one["name"]: one for one in found["methods"]}
    assert by_name["unis"]["class"] == "CML"
    assert by_name["dpcml2"]["ratio"] == 1
    for one in found["methods"]:
        assert one["seconds"] == one["spread"]["best"] > 0
        assert one["ratio"] == one["seconds"] / by_name["dpcml2"]["seconds"]


def test_seconds_are_those_of_epochs_after_the_first(small, monkeypatch):
    """An epoch is what the history says, not the fit that it is a part of."""
    fitted = []
    kind = type(create("unis"))
    fit = kind.fit
    monkeypatch.setattr(kind, "fit", lambda self, train: fitted.append(fit(self, train)))
    (one,) = time_methods(small, methods=["unis"], epochs=4, repeats=1)["methods"]
    epochs = fitted[0].history_.epochs
    assert len(epochs) == 4
    assert one["seconds"] == pytest.approx(sum(epoch.seconds for epoch in epochs[1:]) / 3)


def test_a_method_whose_extra_is_missing_is_skipped_with_a_word(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit", None)
    found = time_methods(small, methods=["bpr", "popularity"], repeats=2)
    assert [one["name"] for one in found["methods"]] == ["popularity"]
    assert found["methods"][0]["ratio"] is None
    assert "[peers]" in found["skipped"]["bpr"]


def test_an_unknown_method_is_an_error(small):
    with pytest.raises(ParameterError, match="did you mean 'ease'"):
        time_methods(small, methods=["eaze"])


def test_the_memory_of_a_fit_is_that_of_a_process_of_its_own(small):
    held = np.ones(60_000_000)  # 480 MB that belong to this process only
    found = fit_memory("dpcml2", {"n_vectors": 2, "dim": 8, "n_candidates": 3, "epochs": 1}, small)
    assert found["parameters"] == 8 * (2 * 40 + 60)
    assert found["needed_bytes"] < found["peak_bytes"] < held.nbytes
