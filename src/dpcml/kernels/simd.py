"""Distances of items to all vectors of a user, written in LLVM's terms: most of training is spent here.

The partial sums of all of a user's vectors and of several items stay in registers, and eight sums are reduced
together. Rows must be padded with zeros to a multiple of `LANES`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic
from numba.np import arrayobj

from dpcml.kernels.lanes import FAST, INDEX, LANES, VECTOR, fold, padded, shuffle


def items_at_once(n_vectors: int) -> int:
    """Return how many items share a pass over the user's vectors: as many as the registers hold."""
    return max(1, min(4, 10 // min(n_vectors, LANES)))


@intrinsic(prefer_literal=True)
def nearest_distances(typing, users, user, squares, items, chosen, b, first, out, n_vectors, width, at_once):
    """Distances of some items to each of a user's vectors, without the items' own squares.

    For ``at_once`` items ``chosen[b, first], ...`` it writes ``squares[user, c] - 2 <users[user, c], item>`` to lane c
    of ``out[place, 1:]`` and the smallest of them to ``out[place, 0]``, place counting from ``first``.

    Parameters
    ----------
    users, user
        Array of shape (users, vectors, width) and a row of it.
    squares
        Squared norms, shape (users, lanes); lanes without a vector hold infinity.
    items, chosen, b, first
        Array of shape (items, width), int32 rows of it, and where in ``chosen`` to begin.
    out
        Array of shape (candidates, 1 + lanes), lanes being the vectors rounded up to a multiple of 8.
    n_vectors, width, at_once
        Constants.
    """
    sizes = (n_vectors, width, at_once)
    if not all(isinstance(size, types.IntegerLiteral) for size in sizes):
        raise RequireLiteralValue("n_vectors, width and at_once must be constants")
    count, row, together = (size.literal_value for size in sizes)
    index = types.int64
    signature = types.void(users, index, squares, items, chosen, index, index, out, n_vectors, width, at_once)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(k: int) -> Any:
            return arrayobj.make_array(signature.args[k])(context, builder, args[k]).data

        def at(pointer: Any, offset: Any) -> Any:
            return builder.gep(pointer, [offset if hasattr(offset, "type") else INDEX(offset)])

        lanes = padded(count)
        start, listed = args[6], arrayobj.make_array(signature.args[4])(context, builder, args[4])
        listed = at(listed.data, builder.mul(args[5], builder.extract_value(listed.shape, 1)))
        mine = at(data(0), builder.mul(args[1], INDEX(count * row)))
        theirs = []
        for t in range(together):
            item = builder.load(at(listed, builder.add(start, INDEX(t))))
            theirs.append(at(data(3), builder.mul(builder.sext(item, INDEX), INDEX(row))))
        outs = [at(data(7), builder.mul(builder.add(start, INDEX(t)), INDEX(1 + lanes))) for t in range(together)]
        own = at(data(2), builder.mul(args[1], INDEX(lanes)))
        best = [None] * together
        for group in range(0, count, LANES):
            members = range(group, min(group + LANES, count))
            sums = _dot_products(builder, at, mine, theirs, members, row)
            for t in range(together):
                doubled = builder.fmul(
                    _sums_of_lanes(builder, sums[t]), ir.Constant(VECTOR, [-2.0] * LANES), flags=FAST
                )
                distances = builder.fadd(_load(builder, at(own, group)), doubled, flags=FAST)
                _store(builder, distances, at(outs[t], 1 + group))
                best[t] = distances if best[t] is None else _smaller(builder, best[t], distances)
        for t in range(together):
            builder.store(fold(builder, best[t], lambda a, b: _smaller(builder, a, b)), outs[t])
        return context.get_dummy_value()

    return signature, codegen


def _load(builder: Any, pointer: Any) -> Any:
    value = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    value.align = 4
    return value


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, VECTOR.as_pointer())).align = 4


def _dot_products(builder: Any, at: Any, mine: Any, theirs: Any, members: range, row: int) -> list[list[Any]]:
    """Return partial sums of the products of each item (outer) with each vector (inner), one per lane."""
    sums: list[list[Any]] = [[None] * len(members) for _ in theirs]
    for k in range(0, row, LANES):
        loaded = [_load(builder, at(item, k)) for item in theirs]
        for place, c in enumerate(members):
            vector = _load(builder, at(mine, c * row + k))
            for t, item in enumerate(loaded):
                product = builder.fmul(vector, item, flags=FAST)
                sums[t][place] = product if k == 0 else builder.fadd(sums[t][place], product, flags=FAST)
    return sums


def _sums_of_lanes(builder: Any, vectors: list[Any]) -> Any:
    """Return one vector whose lane c is the sum of the lanes of vector c, by pairwise additions."""
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    level = [*vectors, *[zero] * (LANES - len(vectors))]
    for _ in range(2):  # neighbours within halves: a0+a1 a2+a3 b0+b1 b2+b3 | the same of the upper halves
        level = [
            builder.fadd(
                shuffle(builder, a, b, [0, 2, 8, 10, 4, 6, 12, 14]),
                shuffle(builder, a, b, [1, 3, 9, 11, 5, 7, 13, 15]),
            )
            for a, b in zip(level[::2], level[1::2], strict=True)
        ]
    low, high = level
    return builder.fadd(
        shuffle(builder, low, high, [0, 1, 2, 3, 8, 9, 10, 11]),
        shuffle(builder, low, high, [4, 5, 6, 7, 12, 13, 14, 15]),
    )


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)
