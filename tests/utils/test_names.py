from __future__ import annotations

import pytest

from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.names import Registry


@pytest.fixture
def models() -> Registry[type]:
    registry: Registry[type] = Registry("model")
    registry.add("popularity", int)
    registry.add("ease", float)
    return registry


def test_finds_what_was_added(models):
    assert models["ease"] is float
    assert "ease" in models
    assert "als" not in models


def test_names_are_listed_in_the_order_of_registration(models):
    assert list(models) == ["popularity", "ease"]
    assert len(models) == 2


def test_decorator_returns_its_argument(models):
    @models.register("mine")
    class Mine: ...

    assert models["mine"] is Mine


def test_a_name_cannot_be_taken_twice(models):
    with pytest.raises(ParameterError, match="model 'ease' is already registered"):
        models.add("ease", str)
    assert models["ease"] is float


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eaze", "did you mean 'ease'"),
        ("EASE", "did you mean 'ease'"),
        ("xyz", "known: ease, popularity"),
        (3, "known:"),
    ],
)
def test_unknown_names_get_a_hint(models, name, hint):
    with pytest.raises(ParameterError, match=f"unknown model {name!r}: {hint}"):
        models[name]


def test_hint_keeps_the_spelling():
    assert did_you_mean("itemknn", ["ItemKNN", "EASE"]) == "did you mean 'ItemKNN'?"
    assert did_you_mean("zzz", ["ItemKNN", "EASE"]) == "known: EASE, ItemKNN"
