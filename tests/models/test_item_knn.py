import numpy as np
import pytest

from dpcml import ItemKNN
from dpcml.utils.errors import ParameterError


def test_scores_sum_the_similarities_of_kept_neighbours():
    rng = np.random.default_rng(0)
    likes = (rng.random((60, 15)) < 0.3).astype(float)
    together = likes.T @ likes
    counts = np.diag(together)
    similarity = together / (np.sqrt(np.outer(counts, counts)) + 3)
    np.fill_diagonal(similarity, 0)
    for row in similarity:  # each item keeps its own 4 nearest
        row[np.argsort(-row, kind="stable")[4:]] = 0
    model = ItemKNN(k=4, shrink=3).fit(likes)
    np.testing.assert_allclose(model.similarity_.toarray(), similarity, rtol=1e-6)
    np.testing.assert_allclose(model.score(np.arange(60)), likes @ similarity.T, rtol=1e-5)


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("k", 2.5), ("shrink", -1), ("shrink", np.inf)])
def test_bad_parameters(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        ItemKNN(**{name: value})
