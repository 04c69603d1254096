import sys

import pytest

from dpcml.benchmarks.methods import bench_methods, method_names
from dpcml.models import MODELS, create
from dpcml.models.presets import PRESETS
from dpcml.utils.errors import ParameterError


def test_every_model_and_preset_is_timed_by_default():
    assert set(method_names()) == {*MODELS, *PRESETS}
    assert len(method_names()) == len(set(method_names()))


def test_epochs_and_fits_are_told_apart(small):
    names = ["popularity", "ease", "unis", "dpcml2"]
    found = bench_methods(small, methods=names, epochs=2, repeats=2)
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
    (one,) = bench_methods(small, methods=["unis"], epochs=4, repeats=1)["methods"]
    epochs = fitted[0].history_.epochs
    assert len(epochs) == 4
    assert one["seconds"] == pytest.approx(sum(epoch.seconds for epoch in epochs[1:]) / 3)


def test_a_method_whose_extra_is_missing_is_skipped_with_a_word(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit", None)
    found = bench_methods(small, methods=["bpr", "popularity"], repeats=2)
    assert [one["name"] for one in found["methods"]] == ["popularity"]
    assert found["methods"][0]["ratio"] is None
    assert "pip install 'dpcml[peers]'" in found["skipped"]["bpr"]


def test_an_unknown_method_is_an_error(small):
    with pytest.raises(ParameterError, match="did you mean 'ease'"):
        bench_methods(small, methods=["eaze"])
