import numpy as np
import pytest

from dpcml import Interactions


@pytest.fixture
def few_negatives() -> Interactions:
    """Users who like all but three of the items: 60 candidates hit each of the three, so the hardest is known."""
    rng = np.random.default_rng(3)
    liked = np.ones((9, 8), dtype=bool)
    for row in liked:
        row[rng.choice(8, 3, replace=False)] = False
    return Interactions.from_csr(liked)


@pytest.fixture
def small() -> Interactions:
    return Interactions.from_csr(np.random.default_rng(0).random((40, 60)) < 0.2)
