import numpy as np
import pytest

from dpcml import EASE
from dpcml.models import ease
from dpcml.utils.errors import DataError, ParameterError


def test_weights_are_the_closed_form_solution():
    rng = np.random.default_rng(0)
    likes = (rng.random((80, 13)) < 0.3).astype(float)
    model = EASE(l2=2.0).fit(likes)
    inverse = np.linalg.inv(likes.T @ likes + 2.0 * np.eye(13))
    expected = -inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.weights_, expected, atol=1e-6)
    np.testing.assert_allclose(model.score(np.arange(80)), likes @ expected, atol=1e-5)


def test_weights_are_put_together_from_blocks():
    rng = np.random.default_rng(0)
    full = rng.standard_normal((2100, 2100))
    full = full + full.T + 100 * np.eye(2100)
    expected = -full / np.diag(full)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(ease._weights(np.triu(full)), expected, rtol=1e-5)


@pytest.mark.parametrize("l2", [0, -1.0, np.inf, np.nan])
def test_bad_penalty(l2):
    with pytest.raises(ParameterError, match="l2="):
        EASE(l2=l2)


def test_too_many_items_for_the_machine(monkeypatch):
    monkeypatch.setattr(ease.os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 1)
    with pytest.raises(DataError, match=r"EASE on 50 items needs about .* use itemknn"):
        EASE().fit(np.ones((2, 50)))
