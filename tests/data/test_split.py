from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpcml import Interactions
from dpcml.data.items import ItemTable
from dpcml.data.split import Split, by_ratio, by_time, leave_last, split_by
from dpcml.utils.errors import DataError, ParameterError

SHARES = (0.6, 0.2, 0.2)


def staircase(n: int) -> Interactions:
    """User u has u + 1 positives."""
    return Interactions.from_csr(np.tril(np.ones((n, n))))


def timed(users: list[int], times: list[float]) -> Interactions:
    """Each positive is on an item of its own."""
    table = ItemTable(np.arange(len(users)))
    stamps = np.array(times, dtype=float)
    owners, ids = np.array(users, dtype=int), np.arange(max(users) + 1)
    return Interactions.from_codes(owners, np.arange(len(users)), ids, table, timestamps=stamps)


def assert_complete(data: Interactions, split: Split) -> None:
    total = sum(part.csr.toarray() for part in split)
    assert (total == data.csr.toarray()).all()  # a positive in two parts would count 2
    for part in split:
        assert (part.user_ids == data.user_ids).all()
        assert part.items is data.items
        assert part.split_hash == split.hash


def test_the_int_rule_for_lists_of_1_to_50():
    train, valid, test = by_ratio(staircase(50), SHARES, 0)
    for n in range(1, 51):
        expected = [max(int(0.6 * n), 1), int(0.2 * n)]
        expected.append(n - sum(expected))
        assert [part.per_user[n - 1] for part in (train, valid, test)] == expected, n


def test_two_parts():
    data = staircase(20)
    train, test = split = by_ratio(data, (0.8, 0.2), 0)
    assert train.per_user.tolist() == [max(int(0.8 * n), 1) for n in range(1, 21)]
    assert_complete(data, split)
    assert split.valid is None
    assert (split.train, split.test) == (train, test)
    assert len(split) == 2
    assert split[0] is train


@given(hnp.arrays(bool, (6, 12)), st.integers(0, 2**32))
def test_parts_are_disjoint_and_complete(matrix, seed):
    matrix[0] = True  # one long list, so that no part is empty
    data = Interactions.from_csr(matrix)
    split = by_ratio(data, SHARES, seed)
    assert_complete(data, split)
    assert ((split.train.per_user > 0) == (data.per_user > 0)).all()


def test_parts_are_random_not_the_first_items():
    train, _, _ = by_ratio(Interactions.from_csr(np.ones((400, 20))), SHARES, 0)
    assert train.per_item.sum() == 400 * 12
    assert np.abs(train.per_item - 240).max() < 5 * np.sqrt(400 * 0.6 * 0.4)


def test_seed_decides():
    data = staircase(30)
    assert by_ratio(data, SHARES, 1).hash == by_ratio(data, SHARES, 1).hash
    assert by_ratio(data, SHARES, 1).hash == by_ratio(data, SHARES, np.random.default_rng(1)).hash
    assert by_ratio(data, SHARES, 1).hash == data.split(SHARES, 1).hash
    assert by_ratio(data, SHARES, 1).hash != by_ratio(data, SHARES, 2).hash


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    assert by_ratio(staircase(30), SHARES, rng).hash != by_ratio(staircase(30), SHARES, rng).hash


def test_hash_depends_on_the_data():
    matrix = np.ones((5, 10))
    renamed = Interactions.from_csr(matrix, user_ids=list("abcde"))
    assert by_ratio(Interactions.from_csr(matrix), SHARES, 0).hash != by_ratio(renamed, SHARES, 0).hash


def test_the_split_of_a_seed_never_changes():
    assert by_ratio(staircase(30), SHARES, 0).hash == "7bc2d2d40bd4ad4a"


@pytest.mark.parametrize(
    "parts",
    [
        (0.5, 0.4),
        (1.0,),
        (0.25,) * 4,
        (1.2, -0.2),
        (1.0, 0.0),
        (np.nan, 1.0),
        (np.inf, -np.inf),
        (),
        0.8,
        ("a", "b"),
    ],
)
@pytest.mark.parametrize("rule", [by_ratio, by_time])
def test_bad_shares(rule, parts):
    with pytest.raises(ParameterError, match="two or three positive shares"):
        rule(timed([0, 0, 0, 0, 0], [1, 2, 3, 4, 5]), parts)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_bad_seeds(seed):
    with pytest.raises(ParameterError, match="seed"):
        by_ratio(staircase(10), SHARES, seed)


@pytest.mark.parametrize("data", [Interactions.from_csr(np.zeros((3, 3))), Interactions.from_csr(np.ones((3, 1)))])
def test_an_empty_part_is_an_error(data):
    with pytest.raises(DataError, match="of the split is empty"):
        by_ratio(data, SHARES, 0)


def test_leave_last_takes_the_latest():
    data = timed([0, 0, 0, 0, 1, 1, 1], [4, 3, 9, 1, 5, 7, 6])
    train, valid, test = split = leave_last(data, 1)
    assert test.indices.tolist() == [2, 5]
    assert valid.indices.tolist() == [0, 6]
    assert train.indices.tolist() == [1, 3, 4]
    assert_complete(data, split)


def test_leave_last_without_validation():
    train, test = leave_last(timed([0] * 5, [1, 2, 3, 4, 5]), 2, valid=False)
    assert train.indices.tolist() == [0, 1, 2]
    assert test.indices.tolist() == [3, 4]


def test_leave_last_leaves_short_users_alone():
    data = timed([0, 0, 0, 1, 1, 2], [1, 2, 3, 1, 2, 1])
    train, valid, test = leave_last(data, 1)
    assert train.per_user.tolist() == [1, 2, 1]
    assert valid.per_user.tolist() == [1, 0, 0]
    assert test.per_user.tolist() == [1, 0, 0]


def test_leave_last_breaks_ties_at_random():
    data = timed([0] * 10, [1] + [2] * 8 + [0])
    held = {int(leave_last(data, 1, valid=False, rng=seed).test.indices[0]) for seed in range(60)}
    assert held <= set(range(1, 9))
    assert len(held) > 3
    assert leave_last(data, 1, rng=5).hash == leave_last(data, 1, rng=5).hash


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "1"])
def test_leave_last_needs_a_number(n):
    with pytest.raises(ParameterError, match="must be a whole number of at least 1"):
        leave_last(timed([0] * 5, [1, 2, 3, 4, 5]), n)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=3, max_size=40),
    st.sampled_from([(0.6, 0.2, 0.2), (0.8, 0.2), (0.1, 0.9), (0.34, 0.33, 0.33)]),
)
def test_by_time_never_sees_the_future(pairs, shares):
    users, times = (list(column) for column in zip(*pairs, strict=True))
    data = timed(users, times)
    if len(set(times)) < len(shares):
        with pytest.raises(DataError, match="different times are too few"):
            by_time(data, shares)
        return
    split = by_time(data, shares)
    assert_complete(data, split)
    for early, late in zip(split.parts, split.parts[1:], strict=False):
        assert early.timestamps.max() < late.timestamps.min()


def test_users_who_appear_late_are_told():
    with pytest.warns(UserWarning, match="1 of 2 users of the test part have no positive in the training part"):
        split = by_time(timed([0, 0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 5.0]), (0.6, 0.4))
    assert split.train.per_user.tolist() == [3, 0]


def test_by_time_meets_the_shares():
    times = np.random.default_rng(0).permutation(100)
    split = by_time(timed([0] * 100, times.tolist()), SHARES)
    assert [part.n_positives for part in split] == [60, 20, 20]


@pytest.mark.parametrize(
    ("times", "sizes"), [([1, 2, 2, 2, 2, 3], [5, 1]), ([1] * 8 + [2], [8, 1]), ([1, 1, 1, 2, 2], [3, 2])]
)
def test_by_time_cuts_as_near_as_ties_allow(times, sizes):
    split = by_time(timed([0] * len(times), times), (0.7, 0.3))
    assert [part.n_positives for part in split] == sizes


@pytest.mark.parametrize("rule", [by_time, leave_last])
def test_times_are_needed(rule):
    with pytest.raises(DataError, match=r"needs the time of each positive: .*\(--time\)"):
        rule(staircase(10))


def test_the_released_codes_split_is_that_of_its_generator():
    """What the released code does, written out: shuffle each user's sorted items in turn, and cut the list."""
    data = Interactions.from_csr(np.random.default_rng(0).random((20, 30)) < 0.5)
    split = split_by(data, "released")
    np.random.seed(1234)  # noqa: NPY002 (as it does)
    for user in range(data.n_users):
        items = data.of(user).tolist()
        np.random.shuffle(items)  # noqa: NPY002
        n_train, n_valid = int(len(items) * 3 / 5), int(len(items) * 1 / 5)
        assert split.train.of(user).tolist() == sorted(items[:n_train])
        assert split.valid.of(user).tolist() == sorted(items[n_train : n_train + n_valid])
        assert split.test.of(user).tolist() == sorted(items[n_train + n_valid :])
    assert split_by(data, "released", seed=5).hash == split.hash, "one split, whatever the seed"
