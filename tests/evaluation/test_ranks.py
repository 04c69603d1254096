import numpy as np
import pytest

from dpcml import Interactions
from dpcml.evaluation import ranks as module
from dpcml.evaluation.ranks import Ranks, rank_held_out
from dpcml.utils.errors import DataError, ParameterError


class Fixed:
    def __init__(self, scores):
        self.scores = scores
        self.largest = 0

    def score(self, users):
        self.largest = max(self.largest, len(users))
        return self.scores[users]


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    data = Interactions.from_csr(rng.random((83, 31)) < 0.4)
    return Fixed(rng.standard_normal((83, 31)).astype(np.float32)), data.split((0.6, 0.2, 0.2), rng)


def test_ranks_match_an_argsort(world):
    model, (train, _, test) = world
    ranks = rank_held_out(model, train, test, top=7)
    for k, user in enumerate(ranks.users):
        order = [i for i in np.argsort(-model.scores[user]).tolist() if i not in set(train.of(user).tolist())]
        mine = slice(ranks.indptr[k], ranks.indptr[k + 1])
        assert ranks.items[mine].tolist() == test.of(user).tolist()
        assert ranks.rank[mine].tolist() == [order.index(i) + 1 for i in test.of(user)]
        assert ranks.top[k].tolist() == order[:7]
        assert ranks.candidates[k] == len(order)


def test_blocks_and_threads_change_nothing_and_bound_memory(world, monkeypatch):
    model, (train, _, test) = world
    whole = rank_held_out(model, train, test, n_threads=1)
    monkeypatch.setattr(module, "BLOCK_BYTES", 4 * test.n_items * 5)
    model.largest = 0
    parts = rank_held_out(model, train, test, n_threads=3)
    assert model.largest == 5
    assert parts.rank.tolist() == whole.rank.tolist()
    assert parts.top.tolist() == whole.top.tolist()


def test_masking_validation_moves_items_up_only(world):
    model, (train, valid, test) = world
    with_valid = rank_held_out(model, train, test)
    without = rank_held_out(model, train, test, also_masked=valid)
    assert (without.rank <= with_valid.rank).all()
    assert (without.rank < with_valid.rank).any()
    assert (without.candidates == with_valid.candidates - valid.per_user[without.users]).all()


def test_some_users_only(world):
    model, (train, _, test) = world
    ranks = rank_held_out(model, train, test, users=np.array([5, 2]))
    assert ranks.users.tolist() == [2, 5]
    assert len(ranks.items) == test.per_user[[2, 5]].sum()


def test_users_without_held_out_items_are_left_out():
    train = Interactions.from_csr(np.array([[1, 1], [1, 0], [0, 0]]))  # the first has seen everything
    test = Interactions.from_csr(np.array([[0, 0], [0, 1], [1, 0]]))
    ranks = rank_held_out(Fixed(np.zeros((3, 2), dtype=np.float32)), train, test)
    assert ranks.users.tolist() == [1, 2]
    assert ranks.rank.tolist() == [1.0, 1.5]


def test_scores_of_seen_items_do_not_count_even_when_they_are_nearly_infinite():
    train, test = Interactions.from_csr(np.array([[1, 0, 0]])), Interactions.from_csr(np.array([[0, 1, 0]]))
    model = Fixed(np.array([[np.inf, -np.inf, -np.inf]], dtype=np.float32))
    assert rank_held_out(model, train, test).rank.tolist() == [1.5]


@pytest.mark.parametrize(
    ("scores", "message"),
    [(np.full((83, 31), np.nan, dtype=np.float32), "NaN"), (np.zeros((83, 30), dtype=np.float32), "shape")],
)
def test_bad_scores_are_refused(world, scores, message):
    with pytest.raises(DataError, match=message):
        rank_held_out(Fixed(scores), world[1].train, world[1].test)


def test_overlapping_and_foreign_parts_are_refused(world):
    model, (train, _, test) = world
    with pytest.raises(DataError, match="must not overlap"):
        rank_held_out(model, train, train)
    with pytest.raises(DataError, match="rows and columns agree"):
        rank_held_out(model, Interactions.from_csr(np.ones((2, 2))), test)
    with pytest.raises(ParameterError, match="rows must be in"):
        rank_held_out(model, train, test, users=np.array([83]))


def test_only_keeps_the_other_items_as_candidates():
    ranks = Ranks.from_places([[0, 1], [4]], n_candidates=9)
    few = ranks.only(np.array([False, True, True]))
    assert few.rank.tolist() == [2.0, 5.0]
    assert few.candidates.tolist() == [9, 9]
