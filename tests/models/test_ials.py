import numpy as np
import pytest

from dpcml import IALS
from dpcml.utils.errors import ParameterError

pytest.importorskip("implicit")


@pytest.fixture(scope="module")
def parts(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


def normal_equations(likes, other, l2, confidence):
    """Solve for each row of likes against the fixed vectors of the other side."""
    solved = []
    for row in likes:
        weights = np.where(row > 0, confidence, 1.0)
        solved.append(
            np.linalg.solve((other.T * weights) @ other + l2 * np.eye(other.shape[1]), other.T @ (weights * row))
        )
    return np.array(solved)


def test_ials_ends_where_neither_side_can_be_improved(parts):
    model = IALS(dim=3, l2=2.0, confidence=5.0, epochs=300).fit(parts.train)
    likes = parts.train.csr.toarray()
    users, items = model.user_factors_, model.item_factors_
    assert np.abs(users).max() > 0.1
    np.testing.assert_allclose(users, normal_equations(likes, items, 2.0, 5.0), atol=1e-3)
    np.testing.assert_allclose(items, normal_equations(likes.T, users, 2.0, 5.0), atol=1e-3)


def test_a_new_user_of_ials_gets_the_ridge_solution(parts):
    model = IALS(dim=4, l2=3.0, confidence=7.0).fit(parts.train)
    likes = np.zeros((2, 40))
    likes[0, [1, 5, 30]] = likes[1, 2] = 1
    expected = normal_equations(likes, model.item_factors_.astype(float), 3.0, 7.0) @ model.item_factors_.T
    np.testing.assert_allclose(model.score_new([[101, 105, 130], [102]]), expected, atol=1e-5)


def test_ials_gives_the_same_bits_on_any_number_of_threads(parts):
    one, three = (IALS(dim=5, n_threads=threads).fit(parts.train) for threads in (1, 3))
    assert one.user_factors_.tobytes() == three.user_factors_.tobytes()
    assert one.item_factors_.tobytes() == three.item_factors_.tobytes()


def test_the_penalty_grows_with_the_data_by_default(parts):
    mean = parts.train.n_positives / parts.train.n_users
    by_default, given = (IALS(dim=3, l2=l2).fit(parts.train) for l2 in (None, mean))
    assert by_default.score([3]).tobytes() == given.score([3]).tobytes()
    assert by_default.score_new([105]).tobytes() == given.score_new([105]).tobytes()


@pytest.mark.parametrize(("name", "value"), [("l2", 0), ("l2", -1), ("confidence", 0), ("n_threads", 0)])
def test_bad_parameters(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        IALS(**{name: value})
