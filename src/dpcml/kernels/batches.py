"""The training loop over batches, compiled for the number of vectors, their width and the choice of negatives."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from dpcml.kernels.gradients import item_gradients, list_met, user_gradient
from dpcml.kernels.mining import ALL, SIMILAR, SIMILAR_DRAW, USERS_AHEAD, fetch_ahead, list_positives, mine, open_share
from dpcml.kernels.negatives import draw_negatives
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.random import bits_of, unit
from dpcml.kernels.simd import items_at_once
from dpcml.kernels.steps import step_rows
from dpcml.kernels.team import ITEMS_TAKEN, USERS_TAKEN, next_share, wait


@cache
def batch_kernel(n_vectors: int, width: int, choice: int) -> Callable[..., Any]:
    """Return the kernel ``run(users, items, data, candidates, objective, steps, scratch, order, ...)``.

    Every thread of a team calls it with its number. Batches ``begin`` to ``end`` of the epoch are trained one after the
    other: threads mine the positives of some users and step these until there are none left, wait for each other, then
    do the same with what the batch asks of its items. ``done`` batches were trained in earlier epochs.
    """
    at_once = items_at_once(n_vectors)
    edition = _edition()  # part of the cache's key: a change in any kernel's source is noticed

    @njit(cache=True, **OPTIONS)
    def run(
        users, items, data, candidates, objective, steps, scratch, order, key, batch_size, n_candidates, begin, end,
        done, thread, n_threads,
    ):  # fmt: skip
        assert edition
        kept = n_candidates if choice == ALL else 1
        mining = n_vectors, width, choice, at_once, n_candidates
        summing = n_vectors, width, kept
        shares, starts, listed = scratch.shares, scratch.starts[thread], scratch.listed[thread]
        n_shares = len(shares) - 1
        for batch in range(begin, end):
            first, k_th = batch * batch_size, done + batch + 1
            size = min(batch_size, len(order) - first)
            list_positives(data, order, first, size, scratch, thread)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                open_share(data, order, batch, first, scratch, low, high, thread)
                draw_negatives(
                    data, candidates, key, first, scratch.pairs, listed, low, high, n_candidates, scratch.chosen
                )
                n_users = 0
                for k in range(low - USERS_AHEAD, high):
                    fetch_ahead(users, items, scratch, k, low, high, mining)
                    if k >= low:
                        chance = unit(bits_of(key, first + listed[k], SIMILAR_DRAW)) if choice == SIMILAR else 0.0
                        mine(users, items, objective, scratch, k, chance, thread, mining)
                        n_users = user_gradient(users, items, objective, scratch, k, n_users, thread, summing)
                step_rows(
                    users, scratch.user_slot, scratch.touched[thread, 0], scratch.gradients[thread, 0], n_users,
                    steps, k_th, objective.users_on_sphere, width,
                )  # fmt: skip
                share = next_share(scratch.team, USERS_TAKEN, batch, n_shares, n_threads)
            wait(scratch.team, n_threads)
            list_met(scratch, size * (kept + 1), thread)
            share = thread
            while share < n_shares:
                low, high = starts[shares[share]], starts[shares[share + 1]]
                n_items = item_gradients(items, scratch, low, high, thread, width)
                step_rows(
                    items, scratch.item_slot, scratch.touched[thread, 1], scratch.gradients[thread, 1], n_items,
                    steps, k_th, objective.items_on_sphere, width,
                )  # fmt: skip
                share = next_share(scratch.team, ITEMS_TAKEN, batch, n_shares, n_threads)
            if thread == 0:
                loss = 0.0
                for k in range(size):
                    loss += scratch.hinge[k]
                scratch.losses[batch] = loss
            wait(scratch.team, n_threads)

    kernel: Callable[..., Any] = run
    return kernel


def _edition() -> int:
    """Return a number that changes with the source of any kernel."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return 1 + zlib.crc32(b"".join(source.read_bytes() for source in sources))
