"""What the training kernels work on, grouped so that each takes a handful of arguments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray


class Table(NamedTuple):
    """Vectors that are trained, one per row, with what the optimiser knows of each."""

    vectors: FloatArray  # (rows, width) float32, zeros beyond the dimension
    squares: FloatArray  # (rows,) squared norms
    moments: FloatArray  # (rows, 2 * width) for Adam, first then second; (rows, width) for Adagrad


class Positives(NamedTuple):
    """Training positives, and a filter that tells most non-positives without a search."""

    items: IntArray  # (positives,) int32, user by user, ascending within one
    indptr: IntArray  # (users + 1,)
    filters: IntArray  # uint64 words; each of a user's positives has two bits set in one of the user's words


class Candidates(NamedTuple):
    """How negatives are drawn: an alias table over the items, or nothing for equal chances."""

    threshold: FloatArray  # (items,) float64, or (0,)
    alias: IntArray  # (items,) int32, or (0,)
    n_items: int


class Objective(NamedTuple):
    """Numbers of the objective."""

    margin: np.float32
    lower: np.float32  # delta_1
    upper: np.float32  # delta_2
    weight: np.float32  # of the diversity hinge
    per_pair: bool  # take that hinge per pair of vectors, not of their mean
    users_on_sphere: bool  # else in the ball; both have radius 1
    items_on_sphere: bool
    dim: int  # of the vectors, without the zeros that fill their rows


class Steps(NamedTuple):
    """Numbers of the optimiser: the k-th batch has rate ``rate[k]``; ``epsilon[k]`` keeps roots above 0."""

    rate: FloatArray  # (steps,) float32; the last holds for all further batches
    epsilon: FloatArray  # (steps,) float32, added to the roots of second moments
    keep_first: np.float32  # beta_1
    keep_second: np.float32  # beta_2

    @classmethod
    def adam(cls, rates: FloatArray, k: IntArray) -> Steps:
        """Return Adam's steps number ``k``, from 1 on, with the bias correction folded into rates and offsets.

        Examples
        --------
        >>> [round(float(rate), 4) for rate in Steps.adam(np.full(2, 0.1), np.array([1, 10**6])).rate]
        [0.0316, 0.1]
        """
        keep_first, keep_second = 0.9, 0.999
        correction = np.sqrt(1 - keep_second**k)
        rate, epsilon = rates * correction / (1 - keep_first**k), 1e-8 * correction
        kept = np.float32(keep_first), np.float32(keep_second)
        return cls(rate.astype(np.float32), epsilon.astype(np.float32), *kept)


class Scratch(NamedTuple):
    """What threads write down between barriers."""

    shares: IntArray  # (shares + 1,) the group with which each begins, see `owners`
    groups: IntArray  # (threads, batch * (kept + 1)) uint8 of what is listed
    starts: IntArray  # (threads, more than groups) int64: where each group begins in the list, and the last ends
    listed: IntArray  # (threads, batch * (kept + 1)) int32: the positives of the batch, then the items that it met
    pairs: IntArray  # (batch, 2) int32 user and item of each positive, as listed
    opens: BoolArray  # (batch,) whether a positive is the first of its user in the batch
    met: IntArray  # (batch * (kept + 1),) int32: of each positive the negatives that are kept, then the positive itself
    nearest: IntArray  # (batch * (kept + 1),) int32: the user's vector that is nearest to each
    weight: FloatArray  # (batch * (kept + 1),) float32: how each is pulled to the user, below 0 for away, 0 for not
    hinge: FloatArray  # (batch,) float32
    chosen: IntArray  # (batch, 1 + candidates) int32: the positive, then its candidates
    sums: FloatArray  # (threads, places * vectors, lanes) float32 of a positive and its candidates, see `simd`
    near: FloatArray  # (threads, 1 + vectors, places) float32 distances: the least, then those to each vector
    weights: FloatArray  # (threads, candidates) float64 chances of similar candidates
    gradients: FloatArray  # (threads, 2, slots, width) float32: of user rows, of item rows
    touched: IntArray  # (threads, 2, slots) int32: the row of each slot
    apart: FloatArray  # (batch * (kept + 1), whole lines) float32: users' nearest vectors less the items they met
    user_slot: IntArray  # (user rows,) int32, -1 where a row has no slot
    item_slot: IntArray  # (items,) int32
    met_in: IntArray  # (users,) int32 the batch in which a user was met last
    team: IntArray  # who has arrived and what was taken, see `team`
    losses: Array  # (batches,) float64 summed hinge of each batch
