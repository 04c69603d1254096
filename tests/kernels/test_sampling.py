import numpy as np
import pytest
from numba import njit
from scipy import sparse, stats

from dpcml import Interactions
from dpcml.kernels.random import epoch_key
from dpcml.kernels.sampling import is_positive, may_be_positive, nth_negative, sample_candidates, words_of
from dpcml.training.samplers import SAMPLERS, positives

N_CANDIDATES = 6


@njit
def ask(data, user, item):
    first, n_words = words_of(data.indptr, user)
    filtered = may_be_positive(data.filters, first, n_words, item)
    return filtered and is_positive(data.items, data.indptr[user], data.indptr[user + 1], item)


@njit
def draw(data, candidates, key, first, pairs, low, high, n, chosen):
    sample_candidates(data, candidates, key, first, pairs, np.arange(high), low, high, n, chosen)


def drawn(world, negatives="uniform", number=0, user=None, repeats=1):
    """Return the negatives of all positives, or of one user's first positive many times."""
    data, candidates = positives(world), SAMPLERS[negatives].candidates(world)
    order = np.arange(world.n_positives) if user is None else np.full(repeats, data.indptr[user])
    chosen = np.full((len(order), N_CANDIDATES + 2), -1, np.int32)
    pairs = np.column_stack([world.rows[order], data.items[order]])
    draw(data, candidates, epoch_key(0, number), 0, pairs, 0, len(order), N_CANDIDATES, chosen)
    assert (chosen[:, [0, -1]] == data.items[order][:, None]).all(), "the positive fills the places around"
    return chosen[:, 1:-1]


def test_positives_are_told_from_all_others(world):
    data = positives(world)
    for user in range(world.n_users):
        found = [item for item in range(world.n_items) if ask(data, user, item)]
        assert found == world.of(user).tolist()


def test_positives_of_a_large_catalogue():
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(100_000, size, replace=False)) for size in (0, 1, 5000)]
    indptr, indices = np.cumsum([0, *map(len, rows)]), np.concatenate(rows)
    matrix = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(3, 100_000))
    data = positives(Interactions.from_csr(matrix))
    for user, row in enumerate(rows):
        assert all(ask(data, user, item) for item in row)
        others = np.setdiff1d(rng.integers(0, 100_000, 5000), row)
        assert not any(ask(data, user, item) for item in others)


@pytest.mark.parametrize(
    "seen", [[], [0], [5], [0, 1, 2], [3, 4, 5], [0, 2, 4], [1, 3, 5], [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
)
def test_nth_negative_counts_what_is_left(seen):
    items = np.array([9, *seen, 9], dtype=np.int32)  # between the positives of others
    left = sorted(set(range(6)) - set(seen))
    assert [nth_negative(items, 1, 1 + len(seen), n) for n in range(len(left))] == left


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
def test_no_positive_is_ever_drawn(world, negatives):
    liked = world.csr.toarray() > 0
    for number in range(5):
        found = drawn(world, negatives, number)
        assert found.min() >= 0
        assert found.max() < world.n_items
        assert not liked[world.rows[:, None], found].any()
        assert (found[world.rows == 0] == 7).all(), "user 0 has seen all but this one"


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
@pytest.mark.parametrize("user", [1, 2, 5])
def test_chances_are_those_of_the_rule_without_what_the_user_has_seen(world, negatives, user):
    found = drawn(world, negatives, user=user, repeats=5000)
    weight = np.ones(world.n_items) if negatives == "uniform" else world.per_item.astype(float)
    weight[world.of(user)] = 0
    expected = weight / weight.sum() * found.size
    counts, some = np.bincount(found.ravel(), minlength=world.n_items), expected > 0
    assert counts[~some].sum() == 0
    assert stats.chisquare(counts[some], expected[some]).pvalue > 1e-3
    for s in range(N_CANDIDATES):  # each draw by itself, and no two draws alike
        assert (
            stats.chisquare(np.bincount(found[:, s], minlength=world.n_items)[some], expected[some] / 6).pvalue > 1e-4
        )
    same = (found[:, 0] == found[:, 1]).sum()
    assert stats.binomtest(int(same), len(found), float(((weight / weight.sum()) ** 2).sum())).pvalue > 1e-3


def test_a_user_with_two_items_left_gets_both_alike():
    liked = np.ones((2, 400), dtype=bool)
    liked[0, [17, 399]] = False
    liked[1, 1:] = False
    found = drawn(Interactions.from_csr(liked), user=0, repeats=2000)
    counts = np.bincount(found.ravel(), minlength=400)
    assert counts[17] + counts[399] == found.size
    assert stats.binomtest(int(counts[17]), found.size).pvalue > 1e-3


def test_same_key_same_bits_whatever_the_ranges(world):
    data, candidates, key = positives(world), SAMPLERS["popularity"].candidates(world), epoch_key(3, 1)
    order = np.random.default_rng(0).permutation(world.n_positives)[20:70]
    pairs = np.column_stack([world.rows[order], data.items[order]])
    whole, parts = (np.zeros((50, 1 + N_CANDIDATES), np.int32) for _ in range(2))
    draw(data, candidates, key, 20, pairs, 0, 50, N_CANDIDATES, whole)
    for start, stop in ((31, 50), (0, 13), (13, 31)):
        draw(data, candidates, key, 20, pairs, start, stop, N_CANDIDATES, parts)
    assert (whole == parts).all()
    draw(data, candidates, epoch_key(3, 2), 20, pairs, 0, 50, N_CANDIDATES, parts)
    assert (whole != parts).any()


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
def test_draws_are_those_of_the_twin(world, build, twin, negatives):
    """Also of a user with two items left, who has every second candidate picked by counting."""
    liked = np.ones((2, 100), dtype=bool)
    liked[0, [17, 88]] = liked[1, 10:] = False
    for data in (world, Interactions.from_csr(liked)):
        engine = build(negatives, n_candidates=N_CANDIDATES, data=data)
        found = drawn(data, negatives, number=0)
        for position in range(0, data.n_positives, 7):
            assert found[position].tolist() == twin.draw(engine, epoch_key(0, 0), position, data.rows[position])
