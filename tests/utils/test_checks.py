from __future__ import annotations

import numpy as np
import pytest

from dpcml import CML, Blend, Interactions, ItemKNN
from dpcml.utils.checks import choice, optional_text, positive
from dpcml.utils.errors import ParameterError


@pytest.mark.parametrize("value", [10**400, True, "1", None, np.array([1.0]), 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ParameterError, match=r"margin=.*must be a finite number"):
        positive("margin", value)


@pytest.mark.parametrize("value", [np.array(["random", None], dtype=object), ["random"], None, {}])
def test_a_choice_is_a_text(value):
    with pytest.raises(ParameterError, match=r"init=.*random"):
        choice("init", value, ("random", "spectral"))


def test_texts_are_texts_or_none():
    optional_text(user="a", item=None)
    with pytest.raises(ParameterError, match="item=7: must be a text"):
        optional_text(user="a", item=7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ItemKNN(shrink=10**400), "shrink="),
        (lambda: CML(schedule=np.array(["a", None], dtype=object)), "schedule="),
        (lambda: Blend(weights=[0, [1]]), "weights="),
        (lambda: Interactions.from_csr(np.eye(2), min_rating=10**400), "min_rating="),
        (lambda: Interactions.from_csr(np.eye(2), items=["a", "b"]), "items="),
    ],
)
def test_values_that_the_campaign_found_are_refused_in_our_words(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
