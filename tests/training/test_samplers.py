import numpy as np
import pytest

from dpcml import Interactions
from dpcml.kernels.mining import ALL, CLOSEST, HARDEST, SIMILAR
from dpcml.kernels.random import GOLDEN
from dpcml.kernels.sampling import words_of
from dpcml.training.samplers import SAMPLERS, BatchSampler, alias_table, attraction, popularity_weights, positives


@pytest.mark.parametrize("weights", [[1.0], [3, 1], [1, 1, 1], [0, 0, 5], [1e-9, 1, 1e9], [2, 3, 4, 100, 1, 1]])
def test_alias_table_has_exactly_the_chances_of_the_weights(weights):
    weights = np.array(weights, dtype=float)
    np.testing.assert_allclose(chances(*alias_table(weights)), weights / weights.sum(), atol=1e-12)


def test_alias_table_of_many_weights():
    weights = np.random.default_rng(0).pareto(1.0, 5000)
    np.testing.assert_allclose(chances(*alias_table(weights)), weights / weights.sum(), rtol=1e-6, atol=1e-13)


def chances(threshold, alias):
    assert ((threshold >= 0) & (threshold <= 1)).all()
    n = len(threshold)
    return (threshold + np.bincount(alias, 1 - threshold, minlength=n)) / n


def test_items_without_a_weight_are_never_drawn():
    rng = np.random.default_rng(0)
    weights = np.where(rng.random(5000) < 0.4, 0.0, rng.pareto(1.0, 5000))
    assert (chances(*alias_table(weights))[weights == 0] == 0).all()


@pytest.mark.parametrize("exponent", [0.25, 1.0])
def test_items_without_a_positive_are_no_candidates_by_popularity(exponent):
    liked = np.zeros((30, 50), dtype=bool)
    liked[:, :20] = np.random.default_rng(1).random((30, 20)) < 0.5
    train = Interactions.from_csr(liked)
    sampler = SAMPLERS["popularity"].with_exponent(exponent)
    found = sampler.candidates(train)
    seen = train.per_item > 0
    expected = np.where(seen, np.maximum(train.per_item, 1) ** exponent, 0)
    np.testing.assert_allclose(chances(found.threshold, found.alias), expected / expected.sum(), atol=1e-12)
    drawn = np.concatenate([items[:, 1:].ravel() for _, items in BatchSampler(train, sampler, 40, 64, seed=0).epoch(0)])
    assert seen[drawn].all()


def test_without_any_positive_all_items_weigh_the_same():
    assert popularity_weights(np.zeros(3, dtype=int), 0.5).tolist() == [1, 1, 1]


def test_a_user_who_likes_all_that_anybody_likes_gets_other_negatives():
    train = Interactions.from_csr(np.array([[1, 1, 0, 0]]))
    (batch,) = BatchSampler(train, SAMPLERS["popularity"], 8, 4, seed=0).epoch(0)
    assert set(batch[1][:, 1:].ravel()) == {2, 3}


def test_weights_of_the_caller_stay_as_they_are():
    weights = np.array([1.0, 2.0, 3.0])
    alias_table(weights)
    assert weights.tolist() == [1, 2, 3]


def test_filters_let_every_positive_pass_and_few_others():
    rng = np.random.default_rng(0)
    liked = rng.random((60, 3000)) < rng.choice([0.0, 0.001, 0.01, 0.3], (60, 1))
    train = Interactions.from_csr(liked)
    data = positives(train)
    assert data.indptr.tolist() == train.indptr.tolist()
    assert data.items.tolist() == train.indices.tolist()
    passes = np.zeros_like(liked)
    for user in range(60):
        first, n_words = words_of(data.indptr, user)
        assert user == 0 or first == sum(words_of(data.indptr, user - 1)), "filters follow each other"
        assert 64 * n_words >= 16 * liked[user].sum()
        spread = np.arange(3000, dtype=np.uint64) * GOLDEN
        places = first + ((spread >> np.uint64(32)) * np.uint64(n_words) >> np.uint64(32)).astype(int)
        found = data.filters[places]
        one, other = (found >> (spread >> np.uint64(shift) & np.uint64(63)) for shift in (20, 26))
        passes[user] = one & other & np.uint64(1)
    assert passes[liked].all()
    assert passes[~liked].mean() < 0.03


def test_each_rule_has_its_candidates_and_its_choice():
    train = Interactions.from_csr(np.array([[1, 1, 0, 0], [1, 0, 1, 0]]))
    assert {name: SAMPLERS[name].choice for name in SAMPLERS} == {
        "uniform": ALL, "popularity": ALL, "two-stage": SIMILAR, "hard": CLOSEST, "partial-auc": HARDEST,
    }  # fmt: skip
    for name in ("uniform", "hard", "partial-auc"):
        assert len(SAMPLERS[name].candidates(train).alias) == 0
        assert SAMPLERS[name].with_exponent(3.0) == SAMPLERS[name]
    for exponent, expected in ((1.0, [0.5, 0.25, 0.25, 0]), (2.0, [4 / 6, 1 / 6, 1 / 6, 0]), (0.5, None)):
        found = SAMPLERS["popularity"].with_exponent(exponent).candidates(train)
        if expected is None:
            weight = np.sqrt([2, 1, 1, 0])
            expected = weight / weight.sum()
        np.testing.assert_allclose(chances(found.threshold, found.alias), expected, atol=1e-4)


@pytest.mark.parametrize("n_candidates", [1, 2, 3, 10, 24, 26, 90, 1000])
def test_how_many_candidates_become_negatives(n_candidates):
    found = {name: SAMPLERS[name].n_negatives(n_candidates) for name in SAMPLERS}
    tenth = min(n_candidates, max(2, round(n_candidates / 10)))
    expected = {"uniform": n_candidates, "popularity": n_candidates, "two-stage": 1, "hard": 1, "partial-auc": tenth}
    assert found == expected


@pytest.mark.parametrize(("density", "count"), [(0.5, 10), (0.01, 15), (0.0002, 30)])
def test_sparse_data_have_more_candidates_and_partial_auc_three_times_as_many(density, count):
    liked = np.zeros((100, 100), dtype=bool)
    liked.ravel()[: int(density * 10_000)] = True
    train = Interactions.from_csr(liked)
    found = {name: SAMPLERS[name].default_candidates(train) for name in SAMPLERS}
    assert found == {**dict.fromkeys(SAMPLERS, count), "partial-auc": 3 * count}


def test_attraction_falls_with_the_number_of_likes(likes):
    weights = positives(likes, 0.3).attraction
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, 0.6 * 50 / (50 + likes.per_item), rtol=1e-6)
    assert not positives(likes).attraction.any()
    assert (attraction(likes.per_item, 0.3) == weights).all()


def test_exponent_zero_is_uniform():
    train = Interactions.from_csr(np.array([[1, 1, 0, 0], [1, 0, 1, 0]]))
    assert len(SAMPLERS["popularity"].with_exponent(0.0).candidates(train).alias) == 0


def epoch(sampler, number):
    batches = list(sampler.epoch(number))
    return np.concatenate([users for users, _ in batches]), np.concatenate([items for _, items in batches])


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
def test_every_positive_comes_once_with_negatives_of_its_user(likes, negatives):
    sampler = BatchSampler(likes, SAMPLERS[negatives], 5, 64, seed=1)
    users, items = epoch(sampler, 0)
    assert items.shape == (likes.n_positives, 6)
    assert sampler.n_batches == len(list(sampler.epoch(0)))
    expected = set(zip(likes.rows.tolist(), likes.indices.tolist(), strict=True))
    assert set(zip(users.tolist(), items[:, 0].tolist(), strict=True)) == expected
    liked = likes.csr.toarray() > 0
    assert not liked[users[:, None], items[:, 1:]].any()


def test_negatives_do_not_depend_on_the_batches_but_on_seed_and_epoch(likes):
    def drawn(size, seed=0, number=0):
        return epoch(BatchSampler(likes, SAMPLERS["uniform"], 3, size, seed), number)

    users, items = drawn(7)
    for same, other in zip(drawn(1000), (users, items), strict=True):
        assert (same == other).all()
    assert (drawn(7, seed=1)[1] != items).any()
    assert (drawn(7, number=1)[1] != items).any()
