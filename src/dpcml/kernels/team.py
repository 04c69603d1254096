"""A team of threads that work through batches in step: a barrier for code that has released the interpreter's lock.

The barrier spins for a moment, because the others are usually a few microseconds away, and then offers its processor
to others, so that on a crowded machine the one who is late gets it.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np import arrayobj

from dpcml.utils.arrays import IntArray

SPINS = 100  # a few microseconds
_ARRIVED, _ROUND = 0, 8  # places in the state, a cache line apart
GIVEN_UP = 9  # set where the team is not whole: nobody waits any more
USERS_TAKEN, ITEMS_TAKEN = 16, 24  # shares that were asked for since the epoch began

_give_way = types.ExternalFunction("sched_yield", types.int32())


def team_state() -> IntArray:
    """Return the state of a new team.

    Examples
    --------
    >>> team_state().tolist() == [0] * 32
    True
    """
    return np.zeros(32, dtype=np.int64)


@intrinsic
def _add(typing, array, place, value):
    """Add to an element in one indivisible step; returns what was there before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), codegen


@intrinsic
def _read(typing, array, place):
    """Read an element that other threads change."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _pause(typing):
    """Tell the processor that this is a waiting loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            name, kind = "llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(nogil=True, cache=True)
def wait(state, n_threads):
    """Return when all ``n_threads`` threads of the team have called this."""
    if n_threads == 1:
        return
    this_round = _read(state, _ROUND)
    if _add(state, _ARRIVED, 1) == n_threads - 1:
        _add(state, _ARRIVED, -n_threads)
        _add(state, _ROUND, 1)
        return
    spins = 0
    while _read(state, _ROUND) == this_round and _read(state, GIVEN_UP) == 0:
        spins += 1
        if spins > SPINS:
            _give_way()
        else:
            _pause()


@njit(nogil=True, cache=True)
def next_share(state, counter, batch, n_shares, n_threads):
    """Return a share of a batch that nobody has worked on; ``n_shares`` or more where none is left.

    The first ``n_threads`` shares are not handed out here. Every thread asks until none is left, so that a batch is
    asked for ``n_shares`` times.
    """
    if n_threads == 1:
        return n_shares
    return n_threads + _add(state, counter, 1) - batch * n_shares
