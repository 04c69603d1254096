"""The training loop over batches, compiled for the number of vectors, their width and every choice of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from dpcml.kernels.choosing import ALL, CLOSEST, closest, similar
from dpcml.kernels.edition import EDITION
from dpcml.kernels.gradients import (
    NONE,
    PER_PAIR,
    PER_USER,
    hold_mean,
    hold_pairs,
    item_gradients,
    list_met,
    user_gradient,
)
from dpcml.kernels.mining import USERS_AHEAD, fetch_ahead, keep, list_positives, measure, open_share
from dpcml.kernels.negatives import draw_negatives
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.simd import items_at_once
from dpcml.kernels.steps import step_by_adagrad, step_by_adam
from dpcml.kernels.team import ITEMS_TAKEN, USERS_TAKEN, next_share, wait


@cache
def batch_kernel(n_vectors: int, width: int, choice: int, optimiser: str, per_pair: bool) -> Callable[..., Any]:
    """Return the kernel ``run(users, items, data, candidates, objective, steps, scratch, order, ...)``.

    Every thread of a team calls it with its number. Batches ``begin`` to ``end`` of the epoch are trained one after the
    other: threads mine the positives of some users and step these until there are none left, wait for each other, then
    do the same with what the batch asks of its items. ``done`` batches were trained in earlier epochs.
    """
    at_once = items_at_once(n_vectors)
    adam = optimiser == "adam"
    diversity = NONE if n_vectors == 1 else PER_PAIR if per_pair else PER_USER
    edition = EDITION  # part of the cache's key: a change in any kernel's source is noticed

    @njit(cache=True, **OPTIONS)
    def run(
        users, items, data, candidates, objective, steps, scratch, order, key, batch_size, n_candidates, begin, end,
        done, thread, n_threads,
    ):  # fmt: skip
        assert edition
        # Numba drops the branches that a constant rules out before it compiles what they call.
        step_rows = step_by_adam if adam else step_by_adagrad
        kept = n_candidates if choice == ALL else 1
        mining = n_vectors, width, at_once, n_candidates
        summing = n_vectors, width, kept
        # Functions that are compiled on their own get the arrays they use: all of them took a second more to compile.
        shares, pairs, met, weight = scratch.shares, scratch.pairs, scratch.met, scratch.weight
        groups, starts, listed = scratch.groups[thread], scratch.starts[thread], scratch.listed[thread]
        user_rows, of_users = scratch.touched[thread, 0], scratch.gradients[thread, 0]
        item_rows, of_items = scratch.touched[thread, 1], scratch.gradients[thread, 1]
        n_shares = len(shares) - 1
        for batch in range(begin, end):
            first, k_th = batch * batch_size, done + batch + 1
            size = min(batch_size, len(order) - first)
            list_positives(order, first, size, groups, starts, listed)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                open_share(data, order, batch, first, listed, low, high, pairs, scratch.opens, scratch.met_in)
                draw_negatives(data, candidates, key, first, pairs, listed, low, high, n_candidates, scratch.chosen)
                n_rows = np.int64(0)
                for k in range(low - USERS_AHEAD, high):
                    fetch_ahead(users, items, scratch, k, low, high, mining)
                    if k < low:
                        continue
                    measure(users, items, scratch, k, thread, mining)
                    if choice == ALL:
                        place = 1
                    elif choice == CLOSEST:
                        place = closest(items, scratch, k, thread, n_candidates)
                    else:
                        place = similar(items, scratch, k, thread, n_candidates, objective.dim, key, first + listed[k])
                    keep(items, objective, scratch, k, place, thread, summing)
                    if scratch.opens[k] and objective.weight > 0:
                        if diversity == PER_USER:
                            n_rows = hold_mean(users, objective, scratch, k, n_rows, thread, summing)
                        elif diversity == PER_PAIR:
                            n_rows = hold_pairs(users, objective, scratch, k, n_rows, thread, summing)
                    n_rows = user_gradient(users, items, scratch, k, n_rows, thread, summing)
                step_rows(
                    users, scratch.user_slot, user_rows, of_users, n_rows, steps, k_th, objective.users_on_sphere, width
                )
                share = next_share(scratch.team, USERS_TAKEN, batch, n_shares, n_threads)
            wait(scratch.team, n_threads)
            list_met(met, weight, size * (kept + 1), groups, starts, listed)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                n_rows = item_gradients(
                    items, met, weight, scratch.apart, listed, low, high, scratch.item_slot, item_rows, of_items, width
                )
                step_rows(
                    items, scratch.item_slot, item_rows, of_items, n_rows, steps, k_th, objective.items_on_sphere, width
                )
                share = next_share(scratch.team, ITEMS_TAKEN, batch, n_shares, n_threads)
            if thread == 0:
                loss = 0.0
                for k in range(size):
                    loss += scratch.hinge[k]
                scratch.losses[batch] = loss
            wait(scratch.team, n_threads)

    kernel: Callable[..., Any] = run
    return kernel
