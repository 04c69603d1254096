"""Negatives of one batch, for models whose steps are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit

from dpcml.kernels.edition import EDITION
from dpcml.kernels.negatives import draw_negatives


@cache
def drawing_kernel() -> Callable[..., Any]:
    """Return the kernel ``draw(data, candidates, key, first, pairs, listed, n, chosen)``, see `draw_negatives`."""
    edition = EDITION  # part of the cache's key: a change in any kernel's source is noticed

    @njit(nogil=True, cache=True)
    def draw(data, candidates, key, first, pairs, listed, n, chosen):
        assert edition
        draw_negatives(data, candidates, key, first, pairs, listed, 0, len(listed), n, chosen)

    kernel: Callable[..., Any] = draw
    return kernel
