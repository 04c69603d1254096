import numpy as np
import pytest

from dpcml.kernels.ranking import rank_counts, top_k


def csr(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, rows)]), np.array([i for row in rows for i in row], dtype=np.int32)


@pytest.fixture(params=range(20))
def case(request):
    """Random scores with many ties, users who have seen nothing and users who have seen everything else."""
    rng = np.random.default_rng(request.param)
    n_users, n_items = 7, int(rng.integers(1, 30))
    scores = rng.integers(0, 6, (n_users, n_items)).astype(np.float32)
    kinds = rng.choice(3, size=(n_users, n_items), p=[0.5, 0.3, 0.2])  # candidate, seen, held out
    kinds[0] = 0
    kinds[1] = np.where(kinds[1] == 0, 1, kinds[1])
    seen = [np.flatnonzero(row == 1).tolist() for row in kinds]
    held = [np.flatnonzero(row == 2).tolist() for row in kinds]
    return scores, seen, held


def test_rank_counts_are_those_of_a_loop(case):
    scores, seen, held = case
    users = np.arange(len(scores))
    ahead, tied = (np.full(sum(map(len, held)), -1, dtype=np.int32) for _ in range(2))
    assert rank_counts(scores, users, *csr(seen), *csr(held), ahead, tied, 0, len(scores))
    expected = []
    for user in users:
        others = [i for i in range(scores.shape[1]) if i not in seen[user]]
        for item in held[user]:
            mine = scores[user, item]
            better = sum(scores[user, i] > mine for i in others)
            level = sum(scores[user, i] == mine for i in others) - 1
            expected.append((better, level))
    assert list(zip(ahead.tolist(), tied.tolist(), strict=True)) == expected


def test_top_is_a_stable_sort_without_seen_items(case):
    scores, seen, _ = case
    users = np.arange(len(scores))
    best = np.empty((len(scores), 5), dtype=np.int64)
    best_scores = np.empty(best.shape, dtype=np.float32)
    top_k(scores, users, *csr(seen), best, best_scores, 0, len(scores))
    for user in users:
        order = [i for i in np.argsort(-scores[user], kind="stable").tolist() if i not in seen[user]][:5]
        assert best[user].tolist() == order + [-1] * (5 - len(order))
        expected = scores[user, order].tolist() + [-np.inf] * (5 - len(order))
        assert best_scores[user].tolist() == expected


def test_rank_counts_report_nan():
    scores = np.array([[0.0, np.nan]], dtype=np.float32)
    out = np.zeros(1, dtype=np.int32)
    assert not rank_counts(scores, np.array([0]), *csr([[]]), *csr([[0]]), out, out.copy(), 0, 1)


def test_top_takes_minus_infinity_for_no_candidate():
    best, best_scores = np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.float32)
    top_k(np.array([[-np.inf, 1.0]], dtype=np.float32), np.array([0]), *csr([[]]), best, best_scores, 0, 1)
    assert best.tolist() == [[1, -1]]
