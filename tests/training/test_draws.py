import numpy as np
import pytest

from dpcml.training.draws import Draws
from dpcml.training.samplers import SAMPLERS


def epoch(draws, number):
    batches = list(draws.epoch(number))
    return np.concatenate([users for users, _ in batches]), np.concatenate([items for _, items in batches])


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
def test_every_positive_comes_once_with_negatives_of_its_user(likes, negatives):
    draws = Draws(likes, SAMPLERS[negatives], 5, 64, seed=1)
    users, items = epoch(draws, 0)
    assert items.shape == (likes.n_positives, 6)
    assert draws.n_batches == len(list(draws.epoch(0)))
    expected = set(zip(likes.rows.tolist(), likes.indices.tolist(), strict=True))
    assert set(zip(users.tolist(), items[:, 0].tolist(), strict=True)) == expected
    liked = likes.csr.toarray() > 0
    assert not liked[users[:, None], items[:, 1:]].any()


def test_negatives_do_not_depend_on_the_batches_but_on_seed_and_epoch(likes):
    def drawn(size, seed=0, number=0):
        return epoch(Draws(likes, SAMPLERS["uniform"], 3, size, seed), number)

    users, items = drawn(7)
    for same, other in zip(drawn(1000), (users, items), strict=True):
        assert (same == other).all()
    assert (drawn(7, seed=1)[1] != items).any()
    assert (drawn(7, number=1)[1] != items).any()
