"""Standardised scores of several models as one score, and the weights that are best on held-out positives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from math import comb

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.evaluation.groups import outside_majority
from dpcml.evaluation.metrics import recall
from dpcml.evaluation.protocol import PROTOCOLS, MetricInput, metric_cutoff, select
from dpcml.evaluation.ranks import BLOCK_BYTES, Ranks, Scorer, check_held_out
from dpcml.kernels import ranking
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.threads import over_rows

USERS = 5000  # users by which weights are chosen, at most
BEST = 100  # items that are kept of each model's ranking, at least
POINTS = 100  # weights of the first, coarse search, at most
FINEST = 0.02  # smallest step of a weight
TOLERANCE = 0.02  # share of the metric that may be given for minorities, where the users do not tell the two apart
MINORITY_CUTOFF = 10  # places in which minorities are looked for
LIST_METRIC = f"NDCG@{MINORITY_CUTOFF}"  # what minorities may cost in these places, beside the metric
BONUSES = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3)  # weights of the bonus, beside a sum of 1
WORTH = 5.0  # per cent of minority recall that a per cent of the metric is worth


def blend_scores(parts: Sequence[FloatArray], weights: FloatArray, likes: sparse.csr_array) -> FloatArray:
    """Return the weighted sum of scores that have mean 0 and variance 1 over the items a user does not like.

    Parameters
    ----------
    parts
        Scores of each model, shape (users, items).
    weights
        One per model.
    likes
        The users' items, shape (users, items).

    Examples
    --------
    >>> likes = sparse.csr_array(np.array([[0, 0, 1]]))
    >>> blend_scores([np.array([[0, 2, 50]]), np.array([[8, 8, 0]])], np.array([0.5, 0.5]), likes)
    array([[-0.5,  0.5, 24.5]], dtype=float32)
    """
    total = np.zeros(likes.shape, dtype=np.float32)
    seen = likes.indptr.astype(np.int64), likes.indices.astype(np.int32)
    for scores, weight in zip(parts, weights, strict=True):
        given = np.ascontiguousarray(scores, dtype=np.float32), *seen, float(weight), total
        over_rows(lambda a, b: ranking.add_standardised(*given, a, b), len(total))  # noqa: B023
    return total


def find_weights(
    models: Sequence[Scorer],
    train: Interactions,
    valid: Interactions,
    metric: str = "NDCG@5",
    seed: int = 0,
    favoured: int | None = None,
    bonus: Scorer | None = None,
) -> FloatArray:
    """Return the weights, which sum to 1, with which the blended scores are best on held-out positives.

    Each model scores each user once. Only the held-out items and the best items of each model are kept, and all weights
    are tried on these: a coarse grid first, then ever smaller steps from one weight to another.

    A validation part hardly tells weights apart that lose at most 2 % of the metric and at most one standard error
    of the difference between the users' values. With a favoured model, those of them are taken that serve minorities
    best, by the recall@10 of held-out items outside the user's majority category; a per cent of the metric counts as
    much as five per cent of this recall, and NDCG@10 must be hardly worse too. Where items have no categories, those
    with the largest weight of the favoured model are taken.

    Parameters
    ----------
    models
        Fitted on ``train``.
    train, valid
        Positives that are no candidates, and held-out positives over the same users and items.
    metric
        A metric of accuracy, under the released protocol.
    seed
        Draws 5,000 users where there are more.
    favoured
        Position of the model that serves minorities; None takes the weights with the best metric.
    bonus
        What may be added to the scores of items of a user's smaller interests; its weight is found too.

    Returns
    -------
    FloatArray
        Shape (models,), float32; with ``bonus`` its weight follows, which the sum of 1 does not count.

    Examples
    --------
    >>> from dpcml import ItemKNN, Popularity
    >>> train, valid, _ = Interactions.from_csr(np.tri(9)).split((0.6, 0.2, 0.2), 0)
    >>> weights = find_weights([ItemKNN().fit(train), Popularity().fit(train)], train, valid, "NDCG@3")
    >>> round(float(weights.sum()), 5)
    1.0
    """
    check_held_out(train, valid)
    cutoff = metric_cutoff(metric) or 1
    users = _some_users(valid, cutoff, seed)
    scorers = [*models, *([] if bonus is None else [bonus])]
    cases = _Cases.collect(scorers, train, valid, users, max(BEST, 2 * cutoff))
    no_bonus = np.zeros(len(scorers) - len(models))
    tried: dict[str, dict[tuple[float, ...], FloatArray]] = {metric: {}, LIST_METRIC: {}}  # weights and users' values

    def values(weights: FloatArray, metric: str = metric) -> FloatArray:
        key = tuple(np.round(weights, 6).tolist())
        if key not in tried[metric]:
            tried[metric][key] = cases.values(np.array(key), metric)
        return tried[metric][key]

    def value(weights: FloatArray) -> float:
        return float(np.nanmean(values(np.append(weights, no_bonus))))

    best = np.append(_search(value, len(models)), no_bonus)
    if favoured is None:
        return best.astype(np.float32)
    for weights in _towards_each(best[: len(models)]):
        value(weights)
    accuracy = [metric] if train.items.attributes is None else [metric, LIST_METRIC]

    def as_good(weights: FloatArray) -> bool:
        return all(_hardly_worse(values(weights, one), values(best, one)) for one in accuracy)

    near = [weights for weights in map(np.array, list(tried[metric])) if as_good(weights)]
    if bonus is not None:
        near += [more for weights in near for more in takewhile(as_good, _with_bonus(weights))]
    found = _most_served(near, [float(np.nanmean(values(one))) for one in near], cases, train, favoured)
    return found.astype(np.float32)


def _with_bonus(weights: FloatArray) -> Iterator[FloatArray]:
    """Yield the same weights with a larger and larger bonus."""
    yield from (np.append(weights[:-1], level) for level in BONUSES)


def _most_served(
    near: Sequence[FloatArray], metrics: Sequence[float], cases: _Cases, train: Interactions, favoured: int
) -> FloatArray:
    """Return the weights with the highest worth: recall of minorities and metric, else the favoured model's weight."""
    recalls, accuracy = np.array(cases.minority_recalls(near, train)), np.array(metrics)
    worth = np.zeros(len(near))
    if recalls.any():
        most = int(accuracy.argmax())
        worth = recalls / (recalls[most] or recalls.max()) + WORTH * accuracy / (accuracy[most] or 1.0)
    return max(zip(near, worth, strict=True), key=lambda one: (one[1], one[0][favoured]))[0]


def _some_users(valid: Interactions, cutoff: int, seed: int) -> IntArray:
    """Return rows of users who count in a metric with this cut-off, all or a sample; any users if nobody does."""
    for least in (cutoff, 1):
        rows = np.flatnonzero(valid.per_user >= least)
        if len(rows):
            return np.sort(np.random.default_rng(seed).permutation(rows)[:USERS])
    raise DataError("no user has a validation positive: there is nothing to choose weights by")


@dataclass(frozen=True, eq=False)
class _Cases:
    """A few candidates of each user, with every model's standardised score: all that a search of weights needs."""

    users: IntArray  # (users,): rows in the data
    scores: FloatArray  # (models, users, places)
    items: IntArray  # (users, places), -1: no candidate
    indptr: IntArray  # CSR of the places of held-out items
    held: IntArray
    candidates: IntArray  # (users,): how many there are in the catalogue

    @classmethod
    def collect(
        cls, models: Sequence[Scorer], train: Interactions, valid: Interactions, users: IntArray, best: int
    ) -> _Cases:
        """Score every user once with every model, in blocks."""
        width = len(models) * min(best, train.n_items) + int(valid.per_user[users].max())
        scores = np.zeros((len(models), len(users), width), dtype=np.float32)
        items = np.full((len(users), width), -1, dtype=np.int64)
        block = max(1, BLOCK_BYTES // (4 * train.n_items))
        for first in range(0, len(users), block):
            part = slice(first, min(first + block, len(users)))
            likes, one = train.csr[users[part]], np.ones(1)
            standard = [blend_scores([model.score(users[part])], one, likes) for model in models]
            items[part] = _places(standard, likes, valid.csr[users[part]], best, width)
            for number, values in enumerate(standard):
                scores[number, part] = np.take_along_axis(values, np.maximum(items[part], 0), axis=1)
        if not np.isfinite(scores).all():
            raise DataError("a model scored NaN or infinity for an item: scores must be numbers; check the training")
        rows = np.repeat(users, width), items.ravel()
        held = (_contains(valid, *rows) & (rows[1] >= 0)).reshape(items.shape)
        indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
        return cls(users, scores, items, indptr, np.nonzero(held)[1], train.n_items - train.per_user[users])

    def values(self, weights: FloatArray, metric: str) -> FloatArray:
        """Return each user's value of the metric for some weights; NaN for users who do not count."""
        ranks, chosen = self._ranks(weights), select(metric)
        for rules in (PROTOCOLS["released"], PROTOCOLS["text"]):  # the first in which a user counts, as in `validation`
            found: FloatArray = chosen.compute(MetricInput(ranks, rules))[0][metric]
            if not np.isnan(found).all():
                return found
        raise DataError("no user has a validation positive: there is nothing to choose weights by")

    def minority_recalls(self, weights: Sequence[FloatArray], train: Interactions) -> list[float]:
        """Return the recall of held-out items outside the user's majority category; 0 where there are none."""
        if train.items.attributes is None:
            return [0.0] * len(weights)
        rows = np.repeat(np.arange(len(self.users)), np.diff(self.indptr))
        given = replace(self._ranks(weights[0]), users=self.users, items=self.items[rows, self.held])
        wanted = outside_majority(given, train)
        found = [recall(self._ranks(one).only(wanted), MINORITY_CUTOFF) for one in weights]
        return [0.0 if np.isnan(values).all() else float(np.nanmean(values)) for values in found]

    def _ranks(self, weights: FloatArray) -> Ranks:
        """Return the ranks of the held-out places; they are those among all items as long as they are small."""
        total = np.zeros(self.items.shape, dtype=np.float32)
        for scores, weight in zip(self.scores, weights, strict=True):
            total += np.float32(weight) * scores
        total[self.items < 0] = -np.inf
        n_users = len(total)
        ahead, tied = (np.zeros(len(self.held), dtype=np.int32) for _ in range(2))
        nothing = np.zeros(n_users + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        given = total, np.arange(n_users), *nothing, self.indptr, self.held, ahead, tied
        over_rows(lambda a, b: ranking.rank_counts(*given, a, b), n_users)
        top = np.full((n_users, 0), -1)
        return Ranks(np.arange(n_users), self.indptr, self.held, ahead, tied, self.candidates, top)


def _places(
    standard: Sequence[FloatArray], likes: sparse.csr_array, held: sparse.csr_array, best: int, width: int
) -> IntArray:
    """Return each user's held-out items and the best items of each model, each once, -1 elsewhere; (users, width)."""
    n_users = likes.shape[0]
    seen = likes.indptr.astype(np.int64), likes.indices.astype(np.int32)
    found = np.full((n_users, width), -1, dtype=np.int64)
    n = min(best, likes.shape[1])
    values = np.empty((n_users, n), dtype=np.float32)
    for number, scores in enumerate(standard):
        out = np.empty((n_users, n), dtype=np.int64)
        given = scores, np.arange(n_users), *seen, out, values
        over_rows(lambda a, b: ranking.top_k(*given, a, b), n_users)  # noqa: B023
        found[:, number * n : (number + 1) * n] = out
    counts = np.diff(held.indptr)
    rows = np.repeat(np.arange(n_users), counts)
    found[rows, len(standard) * n + np.arange(held.nnz) - np.repeat(held.indptr[:-1], counts)] = held.indices
    found.sort(axis=1)
    found[:, 1:][found[:, 1:] == found[:, :-1]] = -1
    return found


def _contains(data: Interactions, rows: IntArray, columns: IntArray) -> BoolArray:
    """Return whether each pair of row and column is a positive."""
    known, asked = data.rows * data.n_items + data.indices, rows * data.n_items + columns  # the first ascend
    return np.asarray(np.append(known, -1)[np.searchsorted(known, asked)] == asked)


def _search(value: Callable[[FloatArray], float], n: int) -> FloatArray:
    """Return the weights on the simplex with the largest value: the best of a grid, then smaller and smaller steps."""
    steps = max(step for step in range(1, 11) if step == 1 or comb(step + n - 1, n - 1) <= POINTS)
    best = max([np.full(n, 1 / n), *_grid(n, steps)], key=value)  # the first of equal ones
    step = 1 / (2 * steps)
    while n > 1 and step >= FINEST:
        moves = [move for move in _moves(best, step) if value(move) > value(best)]
        if moves:
            best = max(moves, key=value)
        else:
            step /= 2
    return np.asarray(best)


def _towards_each(best: FloatArray) -> Iterator[FloatArray]:
    """Yield weights on the ways from the best ones to each model alone."""
    for alone in np.eye(len(best)):
        yield from (share * alone + (1 - share) * best for share in np.arange(10, 0, -1) / 10)


def _hardly_worse(values: FloatArray, best: FloatArray) -> bool:
    """Return whether users' values lose next to nothing: at most 2 %, and one standard error of the difference."""
    loss = (best - values)[~np.isnan(best)]
    return bool(loss.mean() <= min(TOLERANCE * np.nanmean(best), loss.std() / np.sqrt(len(loss))))


def _grid(n: int, steps: int) -> Iterator[FloatArray]:
    """Yield all weights that are multiples of ``1 / steps``, sum 1."""
    for bars in combinations(range(steps + n - 1), n - 1):
        edges = np.array([-1, *bars, steps + n - 1])
        yield (np.diff(edges) - 1) / steps


def _moves(weights: FloatArray, step: float) -> Iterator[FloatArray]:
    """Yield weights that give a step of one model to another."""
    for source in range(len(weights)):
        for target in range(len(weights)):
            if source != target and weights[source] >= step - 1e-9:
                moved = weights.copy()
                moved[source] -= step
                moved[target] += step
                yield np.maximum(moved, 0)
