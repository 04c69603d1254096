"""A barrier and a shared work queue for threads that run compiled code without the interpreter lock.

A waiting thread spins for a few microseconds, because the others usually arrive within that time. Then it yields its
core, so that on a busy machine a thread that has lost its core gets it back.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from dpcml.kernels.compilation import cached_njit
from dpcml.utils.arrays import IntArray

SPINS = 100  # a few microseconds
# Positions in the state. Counters are a cache line apart, so that threads do not invalidate each other's lines.
_ARRIVED, _ROUND = 0, 8
ABORTED = 9  # set when a thread has failed: the others stop waiting
USER_QUEUE, ITEM_QUEUE = 16, 24  # shares requested since the epoch began

_sched_yield = types.ExternalFunction("sched_yield", types.int32())


def barrier_state() -> IntArray:
    """Return the initial state of a barrier and its two queues.

    Examples
    --------
    >>> barrier_state().tolist() == [0] * 32
    True
    """
    return np.zeros(32, dtype=np.int64)


@intrinsic
def _fetch_add(typing, array, index, value):
    """Add to an element atomically and return its previous value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), codegen


@intrinsic
def _load_acquire(typing, array, index):
    """Return an element that other threads change."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _pause(typing):
    """Tell the processor that this is a spin loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            name, kind = "llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), codegen


@cached_njit(nogil=True)
def wait(state, n_threads):
    """Return when all ``n_threads`` threads have called this, or one has set `ABORTED`."""
    if n_threads == 1:
        return
    this_round = _load_acquire(state, _ROUND)
    if _fetch_add(state, _ARRIVED, 1) == n_threads - 1:
        _fetch_add(state, _ARRIVED, -n_threads)
        _fetch_add(state, _ROUND, 1)
        return
    spins = 0
    while _load_acquire(state, _ROUND) == this_round and _load_acquire(state, ABORTED) == 0:
        spins += 1
        if spins > SPINS:
            _sched_yield()
        else:
            _pause()


@cached_njit(nogil=True)
def next_share(state, queue, batch, n_shares, n_threads):
    """Return the next share of a batch from a queue; ``n_shares`` or more when none is left.

    The first ``n_threads`` shares are static and not in the queue. Every thread asks until none is left, so that a
    batch takes exactly ``n_shares`` requests.
    """
    if n_threads == 1:
        return n_shares
    return n_threads + _fetch_add(state, queue, 1) - batch * n_shares
