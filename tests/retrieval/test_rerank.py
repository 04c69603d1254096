from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpcml.data.items import Attributes
from dpcml.retrieval.aspects import CategoryAspects, VectorAspects, minority_scores, mixed_lists, vector_affinity
from dpcml.retrieval.rerank import FAMILIAR, RERANKERS, SMOOTHING, STRENGTH, CandidateLists, minority_weight, rerank
from dpcml.utils.errors import ParameterError

MIXES = [0.0, 0.1, 0.4, 0.7, 1.0]


def world(seed, users=3, m=12, aspects=4):
    """Return candidates of which some users have fewer."""
    rng = np.random.default_rng(seed)
    items = np.argsort(rng.random((users, 50)), axis=1)[:, :m]
    scores = -np.sort(-rng.standard_normal((users, m)), axis=1)
    affinity = rng.random((users, m, aspects)) * (rng.random((users, m, aspects)) < 0.6)
    affinity /= np.maximum(affinity.sum(axis=2, keepdims=True), 1e-12)
    shares = rng.multinomial(20, [0.6, 0.25, 0.15, 0.0], users) / 20
    ended = np.arange(m) >= rng.integers(2, m + 1, users)[:, None]
    items[ended], scores[ended] = -1, -np.inf
    return CandidateLists(items, scores, affinity, shares)


def losses(name, scores, affinity, shares, mix, places):
    """Return how far each choice of one user's list is below the best that was left, in plain Python."""
    count, interests = len(scores), range(len(shares))
    span = max(scores) - min(scores) or 1
    relevance = [(s - min(scores)) / span for s in scores]
    mean = sum(scores) / count
    deviation = (sum((s - mean) ** 2 for s in scores) / count) ** 0.5 or 1

    def weight(i, chosen):
        top = max(affinity[i]) or 1
        typical = max(affinity[i][c] / top * shares[c] / max(shares) for c in interests)
        left = [np.prod([1 - (1 - mix) * affinity[j][c] for j in chosen]) for c in interests]
        familiar = max(affinity[i][c] / top * left[c] * shares[c] / (shares[c] + FAMILIAR) for c in interests)
        return (1 - typical) * familiar

    def cosine(i, j):
        dot, sizes = sum(x * y for x, y in zip(affinity[i], affinity[j], strict=True)), 1
        for k in (i, j):
            sizes *= sum(x * x for x in affinity[k]) ** 0.5
        return dot / sizes if sizes else 0

    def value(i, chosen):
        if name == "minority":
            return (scores[i] - mean) / deviation + STRENGTH * mix**2 * weight(i, chosen)
        if name == "mmr":
            return (1 - mix) * relevance[i] - mix * max((cosine(i, j) for j in chosen), default=0)
        if name == "xquad":
            left = [np.prod([1 - affinity[j][c] for j in chosen]) for c in interests]
            return (1 - mix) * relevance[i] + mix * sum(shares[c] * affinity[i][c] * left[c] for c in interests)
        listed = [sum(affinity[j][c] for j in (*chosen, i)) / (len(chosen) + 1) for c in interests]
        mixed = [(1 - SMOOTHING) * q + SMOOTHING * p for p, q in zip(shares, listed, strict=True)]
        divergence = sum(p * np.log(p / q) for p, q in zip(shares, mixed, strict=True) if p)
        return (1 - mix) * relevance[i] - mix * divergence

    found = []
    for k, place in enumerate(places):
        left = [i for i in range(count) if i not in places[:k]]
        found.append(max(value(i, places[:k]) for i in left) - value(place, places[:k]))
    return found


@pytest.mark.parametrize("name", list(RERANKERS))
@pytest.mark.filterwarnings("error")
@given(st.integers(0, 2**32), st.sampled_from(MIXES), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_each_choice_is_the_best_that_is_left(name, seed, mix, n):
    given = world(seed)
    places = RERANKERS[name](given, n, mix)
    for u in range(len(given.items)):
        count = int((given.items[u] >= 0).sum())
        chosen = places[u, :count].tolist()
        assert len(set(chosen)) == min(n, count)
        parts = given.scores[u, :count].tolist(), given.affinity[u, :count].tolist(), given.shares[u].tolist()
        assert max(losses(name, *parts, mix, chosen)) < 1e-9  # of nearly equal choices, rounding may take either
        assert (given.items[u, places[u, count:]] == -1).all()


@pytest.mark.parametrize("name", list(RERANKERS))
def test_zero_is_the_order_of_scores_and_lists_are_sorted_by_score(name):
    given = world(1, users=20)
    assert (rerank(name, given, 2, 0.0)[0] == given.items[:, :2]).all()
    items, scores = rerank(name, given, 5, 0.8)
    assert (np.diff(np.where(items < 0, -1e9, scores), axis=1) <= 0).all()
    assert all(len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in items)


@pytest.mark.parametrize("seed", range(5))
def test_a_larger_mix_brings_items_of_smaller_interests_at_the_price_of_scores(seed):
    given = world(seed, users=500)
    weight, total = [], []
    for mix in np.linspace(0, 1, 9):
        places = RERANKERS["minority"](given, 2, mix)
        weight.append(np.take_along_axis(minority_weight(given), places, 1).sum(axis=1).mean())
        total.append(np.take_along_axis(given.scores, places, 1).sum(axis=1).mean())
    assert (np.diff(weight) > 0).all()
    assert (np.diff(total) < 0).all()


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_at_one_no_list_with_as_much_for_smaller_interests_has_better_scores(seed):
    given = world(seed, users=5)
    places = RERANKERS["minority"](given, 2, 1.0)
    for user, chosen in enumerate(places):
        count, weight = int((given.items[user] >= 0).sum()), minority_weight(given)[user]
        better = given.scores[user, chosen].sum() + 1e-9
        for pair in combinations(range(count), 2):
            if weight[list(pair)].sum() >= weight[chosen].sum():
                assert given.scores[user, list(pair)].sum() <= better


def test_a_little_room_goes_to_an_interest_that_the_list_does_not_serve_yet():
    scores = np.array([[9.0, 8.0, 7.0, 6.9, 6.8, 6.7, 0.0]])
    kinds = np.array([[0, 0, 1, 1, 1, 2, 0]])  # the largest interest, and two smaller ones of one size
    lists = CandidateLists(np.arange(7)[None], scores, np.eye(3)[kinds], np.array([[0.6, 0.2, 0.2]]))
    served = [{int(kinds[0, i]) for i in rerank("minority", lists, 4, mix)[0][0]} for mix in (0.0, 0.3)]
    assert served == [{0, 1}, {0, 1, 2}]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", list(RERANKERS))
@pytest.mark.parametrize("mix", MIXES)
def test_somebody_with_nothing_left_or_no_history(name, mix):
    items, scores = np.array([[-1, -1, -1], [7, -1, -1]]), np.array([[-np.inf] * 3, [-0.5, -np.inf, -np.inf]])
    nothing = CandidateLists(items, scores.astype(np.float32), np.zeros((2, 3, 2)), np.zeros((2, 2)))
    found, values = rerank(name, nothing, 2, mix)
    assert found.tolist() == [[-1, -1], [7, -1]]
    assert values.tolist() == [[-np.inf] * 2, [-0.5, -np.inf]]


def test_an_unknown_name():
    with pytest.raises(ParameterError, match="did you mean 'xquad'"):
        rerank("xquadd", world(0), 2, 0.5)


@pytest.mark.parametrize("held", [2**20, 8 * 6 * 2])  # two users at once
def test_minority_scores_are_the_weights_of_all_items(held, monkeypatch):
    monkeypatch.setattr("dpcml.retrieval.aspects.AFFINITY_BYTES", held)
    rng = np.random.default_rng(3)
    kinds = Attributes.from_sets([set(rng.choice(list("abcdef"), rng.integers(0, 4))) for _ in range(30)])
    likes = sparse.csr_array((rng.random((8, 30)) < 0.3).astype(np.int8))
    likes = sparse.vstack([likes, sparse.csr_array((1, 30), dtype=np.int8)]).tocsr()  # somebody without a history
    everything = np.tile(np.arange(30), (9, 1))
    kept = CategoryAspects(kinds, likes)
    lists = CandidateLists(everything, np.zeros((9, 30)), kept.affinity(slice(0, 9), everything), kept.shares)
    np.testing.assert_allclose(minority_scores(kinds, likes), minority_weight(lists), atol=1e-6)
    assert not minority_scores(Attributes.from_sets([set()] * 30), likes).any()


def test_vectors_that_repeat_or_own_nothing_are_no_interests():
    vectors = np.array([[[0, 0], [1, 0], [1, 0], [0, 1]]], dtype=np.float32)
    items = np.random.default_rng(0).random((6, 2)).astype(np.float32)
    shares, candidates = np.array([[0.7, 0.3, 0, 0]]), np.arange(6)[None]
    found = vector_affinity(vectors, shares, items, candidates)
    assert (found[0, :, 2:] == 0).all()
    assert found[:, :, :2] == pytest.approx(vector_affinity(vectors[:, :2], shares[:, :2], items, candidates))
    assert found.sum(axis=2) == pytest.approx(np.ones((1, 6)))
    unknown = vector_affinity(vectors, np.zeros((1, 4)), items, candidates)
    assert (unknown[0, :, 1] == unknown[0, :, 2]).all()


@pytest.mark.parametrize("by", ["vectors", "categories"])
def test_blocks_of_users_do_not_matter(monkeypatch, by):
    rng = np.random.default_rng(2)
    likes = sparse.csr_array((rng.random((9, 30)) < 0.3).astype(np.float32))
    genres = Attributes.from_sets([{"abcdef"[k] for k in rng.integers(0, 6, 2)} for _ in range(30)])
    vectors, films = rng.random((9, 3, 4)).astype(np.float32), rng.random((30, 4)).astype(np.float32)
    aspects = {
        "vectors": VectorAspects(vectors, rng.dirichlet(np.ones(3), 9), films),
        "categories": CategoryAspects(genres, likes),
    }[by]
    items = np.argsort(rng.random((9, 30)), axis=1)
    scores = -np.sort(rng.random((9, 30)).astype(np.float32), axis=1)
    whole = mixed_lists(aspects, items, scores, 5, 0.6)
    monkeypatch.setattr("dpcml.retrieval.aspects.AFFINITY_BYTES", 1)
    alone = mixed_lists(aspects, items, scores, 5, 0.6)
    assert (whole[0] == alone[0]).all()
    assert (whole[1] == alone[1]).all()
