from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from dpcml.kernels.partition import GROUPS, groups_of
from dpcml.training.order import Order

USERS = np.repeat(np.arange(2000), np.random.default_rng(0).integers(1, 30, 2000)).astype(np.int32)


def numbered(users, **options):
    """Return an order of positives whose items are their own numbers."""
    return Order(users, np.arange(len(users), dtype=np.int32), **options)


def drawn(order, key):
    """Return the numbers of the positives in the order that belongs to a key."""
    users, items = order.draw(np.uint64(key)).T
    assert users.tolist() == USERS[items].tolist(), "who likes what is kept"
    return items


def test_an_order_holds_every_positive_once_and_depends_on_its_key_only():
    order = numbered(USERS)
    one, other = drawn(order, 1), drawn(order, 2)
    for found in (one, other):
        assert np.sort(found).tolist() == list(range(len(USERS)))
    assert (one != other).mean() > 0.9
    assert one.tolist() == drawn(numbered(USERS), 1).tolist()


def test_every_batch_has_its_share_of_each_group():
    of = groups_of(USERS)
    share = np.bincount(of, minlength=GROUPS) / len(of)
    found = of[drawn(numbered(USERS), 3)]
    for first in range(0, len(found) - 256, 256):
        counts = np.bincount(found[first : first + 256], minlength=GROUPS)
        assert (np.abs(counts - 256 * share) <= 2).all()


def test_a_positive_of_a_group_is_equally_often_at_each_of_the_groups_places():
    order, of = numbered(USERS[:300]), groups_of(USERS[:300])
    largest = np.bincount(of).argmax()
    member = int(np.flatnonzero(of == largest)[0])
    at = [int(np.flatnonzero(drawn(order, key) == member)[0]) for key in range(3000)]
    _, counts = np.unique(at, return_counts=True)
    assert len(counts) == (of == largest).sum()
    assert stats.chisquare(counts).pvalue > 1e-4


def test_one_user_and_none():
    for max_user_run in (1, 4):
        assert sorted(drawn(numbered(USERS[:1].repeat(5), max_user_run=max_user_run), 0).tolist()) == [0, 1, 2, 3, 4]
        assert drawn(numbered(USERS[:0], max_user_run=max_user_run), 0).tolist() == []


@pytest.mark.parametrize("max_user_run", [1, 4])
def test_threads_and_a_given_array_change_nothing(max_user_run, monkeypatch):
    alone = drawn(numbered(USERS, max_user_run=max_user_run), 5)
    monkeypatch.setattr("dpcml.training.order.PARALLEL_FROM", 1)
    order, out = numbered(USERS, max_user_run=max_user_run, n_threads=3), np.zeros((len(USERS), 2), np.int32)
    assert order.draw(np.uint64(5), out) is out
    assert out[:, 1].tolist() == alone.tolist()


def test_positives_of_a_user_go_in_runs_that_change():
    order = numbered(USERS, max_user_run=3)
    one, other = drawn(order, 1), drawn(order, 2)
    counts = np.bincount(USERS)
    for found in (one, other):
        assert np.sort(found).tolist() == list(range(len(USERS)))
        users = USERS[found]
        ends = np.flatnonzero(np.diff(users, append=-1)) + 1
        lengths = np.diff(ends, prepend=0)
        many = counts[users[ends - 1]] >= 24
        # runs of three, a shorter last one, and now and then two of them one after the other
        assert (lengths[many] == 3).mean() > 0.8
        assert (lengths[counts[users[ends - 1]] < 16] == 1).mean() > 0.95
    together = [{(a, b) for a, b in pairwise(found) if USERS[a] == USERS[b]} for found in (one, other)]
    assert len(together[0] & together[1]) < 0.2 * len(together[0])


def test_runs_are_even_over_groups_too():
    of = groups_of(USERS)
    share = np.bincount(of, minlength=GROUPS) / len(of)
    found = of[drawn(numbered(USERS, max_user_run=4), 3)]
    for first in range(0, len(found) - 256, 256):
        counts = np.bincount(found[first : first + 256], minlength=GROUPS)
        assert (np.abs(counts - 256 * share) <= 6).all()


@pytest.mark.parametrize("max_user_run", [1, 4])
def test_many_users_come_in_blocks_that_every_epoch_visits_in_another_order(max_user_run, monkeypatch):
    alone = drawn(numbered(USERS, max_user_run=max_user_run), 5)
    monkeypatch.setattr("dpcml.training.order.BLOCKS_FROM", 2000)
    monkeypatch.setattr("dpcml.training.order.USERS_PER_BLOCK", 500)
    monkeypatch.setattr("dpcml.training.order.STRETCH", 50)
    order = numbered(USERS, max_user_run=max_user_run)
    visited = []
    for key in range(20):
        found = drawn(order, key)
        assert np.sort(found).tolist() == list(range(len(USERS)))
        blocks = USERS[found] // 50 % 4
        starts = np.flatnonzero(np.diff(blocks, prepend=-1))
        assert len(starts) == 4, "each block is visited once, as a whole"
        visited.append(tuple(blocks[starts].tolist()))
    assert len(set(visited)) > 5
    assert drawn(order, 5).tolist() == drawn(numbered(USERS, max_user_run=max_user_run), 5).tolist() != alone.tolist()


def test_batches_of_a_block_have_their_share_of_each_group(monkeypatch):
    monkeypatch.setattr("dpcml.training.order.BLOCKS_FROM", 2000)
    monkeypatch.setattr("dpcml.training.order.USERS_PER_BLOCK", 1000)
    found = drawn(numbered(USERS), 3)
    half = len(found) // 2 - 300  # of one block
    of = groups_of(USERS[found])[:half]
    share = np.bincount(of, minlength=GROUPS) / len(of)
    for first in range(0, half - 256, 256):
        counts = np.bincount(of[first : first + 256], minlength=GROUPS)
        assert (np.abs(counts - 256 * share) <= 4).all()
