"""The training loop over minibatches, compiled for the number of vectors, their width and the model's choices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpcml.kernels.barrier import ITEM_QUEUE, USER_QUEUE, next_share, wait
from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.gradients import (
    diversity_gradient,
    item_gradients,
    pairwise_diversity_gradient,
    sort_terms,
    user_gradient,
)
from dpcml.kernels.mining import (
    ALL,
    CLOSEST,
    HARDEST,
    USERS_AHEAD,
    measure,
    prefetch_ahead,
    read_share,
    select_closest,
    select_hardest,
    select_similar,
    sort_positives,
    write_terms,
)
from dpcml.kernels.optimizer import update_by_adagrad, update_by_adam
from dpcml.kernels.sampling import sample_candidates
from dpcml.kernels.simd import items_at_once
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray


class Workspace(NamedTuple):
    """Buffers that the threads share or use one each. There are ``terms = batch * (negatives + 1)`` gradient terms."""

    shares: IntArray  # (shares + 1,) first group of each share, see `dpcml.kernels.partition`
    groups: IntArray  # (threads, terms) uint8: group of each positive, then of each term
    starts: IntArray  # (threads, more than groups) int64: start of each group in the indices, and the end
    indices: IntArray  # (threads, terms) int32: positives of the batch, then terms, sorted by group
    pairs: IntArray  # (batch, 2) int32: user and item of each positive, sorted
    is_first: BoolArray  # (batch,) whether a positive is the first of its user in the batch
    term_item: IntArray  # (terms,) int32: the negatives of each positive, then the positive itself
    term_vector: IntArray  # (terms,) int32: the user's vector that is nearest to the item
    term_weight: FloatArray  # (terms,) float32: above 0 the item attracts the vector, below 0 it repels it
    hinge: FloatArray  # (batch,) float32: margin loss of each positive
    chosen: IntArray  # (batch, 1 + candidates) int32: the positive, then its candidates
    sums: FloatArray  # (threads, columns * vectors, lanes) float32: partial inner products, see `dpcml.kernels.simd`
    near: FloatArray  # (threads, 1 + vectors, columns) float32: distance to the nearest vector, then to each vector
    weights: FloatArray  # (threads, candidates) float64: sampling weights of similar candidates
    gradients: FloatArray  # (threads, 2, slots, width) float32: of user rows, of item rows
    touched: IntArray  # (threads, 2, slots) int32: the row of each slot
    differences: FloatArray  # (terms, whole cache lines) float32: user vector minus item vector
    user_slot: IntArray  # (user rows,) int32, -1 for rows without a slot
    item_slot: IntArray  # (items,) int32
    last_batch: IntArray  # (users,) int32: the last batch in which a user occurred
    barrier: IntArray  # see `dpcml.kernels.barrier`
    losses: Array  # (batches,) float64: sum of the margin losses of each batch


@cache
def minibatch_kernel(n_vectors: int, width: int, choice: int, optimizer: str, per_pair: bool) -> Callable[..., Any]:
    """Return the kernel ``train(users, items, data, candidates, objective, steps, work, order, ...)``.

    Every thread calls it with its number. It trains the batches ``begin`` to ``end`` of the epoch one after the other.
    For each, the threads mine the positives of their shares of the users and update these users, meet at a barrier,
    update their shares of the items, and meet again. ``done`` batches were trained in earlier epochs.
    """
    at_once = items_at_once(n_vectors)
    adam, multiple = optimizer == "adam", n_vectors > 1

    @cached_njit(**PLAIN)
    def train(
        users, items, data, candidates, objective, steps, work, order, key, batch_size, n_candidates, n_negatives,
        begin, end, done, thread, n_threads,
    ):  # fmt: skip
        # Numba removes branches whose condition is a constant before it compiles the functions they call.
        update_rows = update_by_adam if adam else update_by_adagrad
        mining = n_vectors, width, at_once, n_candidates
        terms = n_vectors, width, n_negatives
        # Functions that are not inlined get single arrays: passing the whole workspace took a second more to compile.
        shares, pairs, term_item, term_weight = work.shares, work.pairs, work.term_item, work.term_weight
        groups, starts, indices = work.groups[thread], work.starts[thread], work.indices[thread]
        user_rows, of_users = work.touched[thread, 0], work.gradients[thread, 0]
        item_rows, of_items = work.touched[thread, 1], work.gradients[thread, 1]
        n_shares = len(shares) - 1
        for batch in range(begin, end):
            first, k_th = batch * batch_size, done + batch + 1
            size = min(batch_size, len(order) - first)
            sort_positives(order, first, size, groups, starts, indices)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                read_share(data, order, batch, first, indices, low, high, pairs, work.is_first, work.last_batch)
                sample_candidates(data, candidates, key, first, pairs, indices, low, high, n_candidates, work.chosen)
                n_rows = np.int64(0)
                for k in range(low - USERS_AHEAD, high):
                    prefetch_ahead(users, items, work, k, low, high, mining)
                    if k < low:
                        continue
                    measure(users, items, work, k, thread, mining)
                    if choice == ALL:
                        column = 1
                    elif choice == CLOSEST:
                        column = select_closest(items, work, k, thread, n_candidates)
                    elif choice == HARDEST:
                        column = select_hardest(items, work, k, thread, n_candidates, n_negatives, n_vectors)
                    else:
                        position = first + indices[k]
                        column = select_similar(items, work, k, thread, n_candidates, objective.dim, key, position)
                    write_terms(items, data, objective, work, k, column, thread, terms)
                    if multiple and work.is_first[k] and objective.weight > 0:
                        if per_pair:
                            n_rows = pairwise_diversity_gradient(users, objective, work, k, n_rows, thread, terms)
                        else:
                            n_rows = diversity_gradient(users, objective, work, k, n_rows, thread, terms)
                    n_rows = user_gradient(users, items, work, k, n_rows, thread, terms)
                update_rows(
                    users, work.user_slot, user_rows, of_users, n_rows, steps, k_th, objective.users_on_sphere,
                    width,
                )  # fmt: skip
                share = next_share(work.barrier, USER_QUEUE, batch, n_shares, n_threads)
            wait(work.barrier, n_threads)
            sort_terms(term_item, term_weight, size * (n_negatives + 1), groups, starts, indices)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                n_rows = item_gradients(
                    items, term_item, term_weight, work.differences, indices, low, high, work.item_slot, item_rows,
                    of_items, width,
                )  # fmt: skip
                update_rows(
                    items, work.item_slot, item_rows, of_items, n_rows, steps, k_th, objective.items_on_sphere, width
                )
                share = next_share(work.barrier, ITEM_QUEUE, batch, n_shares, n_threads)
            if thread == 0:
                loss = 0.0
                for k in range(size):
                    loss += work.hinge[k]
                work.losses[batch] = loss
            wait(work.barrier, n_threads)

    kernel: Callable[..., Any] = train
    return kernel
