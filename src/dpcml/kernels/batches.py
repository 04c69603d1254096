"""The training loop over batches, compiled for the number of vectors, their width and the choice of negatives."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from dpcml.kernels.gradients import item_gradients, user_gradient
from dpcml.kernels.mining import ALL, SIMILAR, SIMILAR_DRAW, claim, fetch_ahead, mine
from dpcml.kernels.negatives import draw_negatives
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.random import bits_of, unit
from dpcml.kernels.simd import items_at_once
from dpcml.kernels.steps import step_rows
from dpcml.kernels.team import wait


@cache
def batch_kernel(n_vectors: int, width: int, choice: int) -> Callable[..., Any]:
    """Return the kernel ``run(users, items, data, candidates, objective, steps, scratch, order, ...)``.

    Every thread of a team calls it with its number. Batches ``begin`` to ``end`` of the epoch are trained one after the
    other: each thread mines the positives of its users and steps these, waits for the others, then sums what the batch
    asks of its items and steps those. ``done`` batches were trained in earlier epochs.
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
        for batch in range(begin, end):
            first, k_th = batch * batch_size, done + batch + 1
            size = min(batch_size, len(order) - first)
            own = scratch.own[thread]
            n_own = claim(data, order, batch, first, size, scratch, thread, n_threads)
            draw_negatives(data, candidates, key, first, scratch.pairs, own, n_own, n_candidates, scratch.chosen)
            n_users = 0
            for place in range(n_own):
                b = own[place]
                fetch_ahead(users, items, scratch, place, n_own, thread, mining)
                chance = unit(bits_of(key, first + b, SIMILAR_DRAW)) if choice == SIMILAR else 0.0
                mine(users, items, objective, scratch, b, chance, thread, mining)
                n_users = user_gradient(users, items, objective, scratch, b, n_users, thread, summing)
            step_rows(
                users, scratch.user_slot, scratch.touched[thread, 0], scratch.gradients[thread, 0], n_users,
                steps, k_th, objective.users_on_sphere, width,
            )  # fmt: skip
            wait(scratch.barrier, n_threads)
            n_items = item_gradients(items, scratch, size, thread, n_threads, summing)
            step_rows(
                items, scratch.item_slot, scratch.touched[thread, 1], scratch.gradients[thread, 1], n_items,
                steps, k_th, objective.items_on_sphere, width,
            )  # fmt: skip
            if thread == 0:
                loss = 0.0
                for b in range(size):
                    loss += scratch.hinge[b]
                scratch.losses[batch] = loss
            wait(scratch.barrier, n_threads)

    kernel: Callable[..., Any] = run
    return kernel


def _edition() -> int:
    """Return a number that changes with the source of any kernel."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return 1 + zlib.crc32(b"".join(source.read_bytes() for source in sources))
