"""Rules that are out of range or unknown, and what is too thin to stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.data.rules import Rules, drop_thin
from dpcml.utils.errors import DataError, ParameterError


@pytest.mark.parametrize(
    "options",
    [
        {"min_user": 0},
        {"min_user": 2.5},
        {"core": True},
        {"core": "3"},
        {"min_rating": float("nan")},
        {"min_rating": "4"},
    ],
)
def test_bad_rules(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        Rules(**options)


def test_rules_take_numbers_of_numpy() -> None:
    assert Rules(min_user=np.int64(5), min_rating=np.float32(4)).min_user == 5


def test_unknown_rule() -> None:
    with pytest.raises(ParameterError, match="unknown option 'kcore': did you mean 'core'"):
        Rules.of({"kcore": 5})


def test_nothing_to_begin_with() -> None:
    with pytest.raises(DataError, match="there are no positives"):
        drop_thin(Interactions.from_csr(np.zeros((2, 2))), Rules())


def test_an_item_nobody_has_goes() -> None:
    data = drop_thin(Interactions.from_csr(np.array([[1, 0], [1, 0]])), Rules())
    assert data.item_ids.tolist() == [0]
    assert data.preparation.items_dropped == 1
