import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcml.retrieval.rerank import mixed_lists, targets


def twin(queues, scores, shares, n, mix):
    """Build one list in plain Python, from the rule."""
    has = [share > 0 for share in shares] if any(shares) else [True] * len(shares)
    beyond, weight = max(0, 2 * mix - 1), min(1, 2 * mix)
    equal = [h / sum(has) for h in has]
    wanted = [(1 - beyond) * (s if any(shares) else e) + beyond * e for s, e in zip(shares, equal, strict=True)]
    order = sorted((s for row, q in zip(scores, queues, strict=True) for s, i in zip(row, q, strict=True) if i >= 0))
    order = order[::-1][:n]
    scale = max(order[0] - order[-1], 1e-9) if order else 1
    left = [[(i, s) for i, s in zip(q, row, strict=True) if i >= 0] for q, row in zip(queues, scores, strict=True)]
    taken, found = [0] * len(queues), []
    while len(found) < n and any(left):
        offers = []
        for c, queue in enumerate(left):
            if queue:
                behind = wanted[c] * (len(found) + 1) - taken[c]
                offers.append((round((1 - weight) * queue[0][1] / scale + weight * behind, 7), queue[0][1], -c))
        c = -max(offers)[2]
        found.append(left[c].pop(0)[0])
        taken[c] += 1
    return found + [-1] * (n - len(found))


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 1.0]), st.integers(1, 12))
@settings(max_examples=60)
def test_lists_are_those_of_the_twin(seed, mix, n):
    rng = np.random.default_rng(seed)
    queues = rng.permutation(40).reshape(1, 4, 10)
    scores = -np.sort(rng.random((1, 4, 10)).astype(np.float32), axis=2)
    lengths = rng.integers(0, 11, 4)
    ended = np.arange(10) >= lengths[:, None]
    queues[0][ended], scores[0][ended] = -1, -np.inf
    shares = rng.multinomial(12, [0.6, 0.3, 0.1, 0.0]) / 12 if seed % 5 else np.zeros(4)
    found, values = mixed_lists(queues, scores, shares[None], n, mix)
    chosen = twin(queues[0].tolist(), scores[0].tolist(), shares.tolist(), n, mix)
    assert sorted(found[0].tolist()) == sorted(chosen)
    assert values[0].tolist() == sorted(values[0].tolist(), reverse=True)
    by_item = dict(zip(queues.ravel().tolist(), scores.ravel().tolist(), strict=True))
    assert values[0].tolist() == [by_item[i] if i >= 0 else -np.inf for i in found[0].tolist()]


@pytest.mark.parametrize(("mix", "counts"), [(0.5, [7, 2, 1]), (1.0, [3, 3, 4])])
def test_interests_get_their_parts(mix, counts):
    queues = np.arange(60).reshape(1, 3, 20)
    scores = np.array([[-0.9], [-0.5], [-0.1]], np.float32) - np.arange(20, dtype=np.float32) / 100
    found, _ = mixed_lists(queues, scores[None], np.array([[0.7, 0.2, 0.1]]), 10, mix)
    assert np.bincount(found[0] // 20, minlength=3).tolist() == counts


def test_zero_is_the_order_of_scores():
    rng = np.random.default_rng(0)
    queues, scores = rng.permutation(60).reshape(2, 3, 10), -np.sort(rng.random((2, 3, 10)).astype(np.float32), axis=2)
    found, values = mixed_lists(queues, scores, np.full((2, 3), 1 / 3), 10, 0.0)
    assert (np.diff(values, axis=1) <= 0).all()
    assert (values == -np.sort(-scores.reshape(2, -1), axis=1)[:, :10]).all()
    assert len(set(found[0])) == 10


def test_interests_without_a_share_get_nothing_while_others_have_items():
    assert targets(np.array([[0.5, 0.5, 0.0], [0, 0, 0]]), 0.8)[0].tolist() == [0.5, 0.5, 0.0]
    assert targets(np.array([[0.5, 0.5, 0.0], [0, 0, 0]]), 0.2)[1].tolist() == [1 / 3] * 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mix", [0.0, 0.3, 0.5, 1.0])
def test_somebody_with_nothing_left_gets_nothing_without_a_warning(mix):
    queues, scores = np.full((2, 2, 3), -1), np.full((2, 2, 3), -np.inf, dtype=np.float32)
    queues[1, 0, 0], scores[1, 0, 0] = 7, -0.5
    found, values = mixed_lists(queues, scores, np.array([[0.5, 0.5], [0.5, 0.5]]), 3, mix)
    assert found.tolist() == [[-1, -1, -1], [7, -1, -1]]
    assert values.tolist() == [[-np.inf] * 3, [-0.5, -np.inf, -np.inf]]
