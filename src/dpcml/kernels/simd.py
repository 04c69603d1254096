"""Distances of items to all vectors of a user: most of training is spent here.

The products of a user's vectors with several items are summed in registers, eight lanes each; then the sums of eight
items are reduced together, so that a lane holds an item. Rows must be padded with zeros to a multiple of `LANES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic
from numba.np import arrayobj

from dpcml.kernels.lanes import FAST, INDEX, LANES, VECTOR, lanes_type, shuffle, smaller, splat, store


def items_at_once(n_vectors: int) -> int:
    """Return how many items share a pass over the user's vectors: as many as the registers hold."""
    return max(1, min(4, 10 // min(n_vectors, LANES)))


@njit(cache=True, inline="always")
def nearest_distances(users, user, items, chosen, b, sums, near, n_vectors, width, at_once):
    """Write the distances of the items ``chosen[b]`` to each of a user's vectors, without the items' own squares.

    Parameters
    ----------
    users, user
        `Table` of the users' vectors, and a user's number.
    items
        Vectors, shape (items, width).
    chosen, b
        int32 array of shape (batch, places) and a row of it; places are a multiple of ``at_once``.
    sums
        Room for sums, shape (places * vectors, lanes), places rounded up to a multiple of the lanes.
    near
        Output of shape (1 + vectors, places): ``|users[user, c]|^2 - 2 <users[user, c], item>`` in row 1 + c, and the
        smallest of them in row 0.
    n_vectors, width, at_once
        Constants.
    """
    places, first = chosen.shape[1], user * n_vectors
    vectors, squares = users.vectors, users.squares
    for place in range(0, places, at_once):
        _products(vectors, first, items, chosen, b, place, sums, n_vectors, width, at_once)
    double = splat(np.float32(-2))
    for place in range(0, places, LANES):
        lowest = splat(np.float32(np.inf))
        for c in range(n_vectors):
            distance = double * _reduced(sums, place * n_vectors + c, n_vectors) + splat(squares[first + c])
            store(near, 1 + c, place, distance)
            lowest = smaller(distance, lowest)
        store(near, 0, place, lowest)


@intrinsic(prefer_literal=True)
def _products(typing, users, first, items, chosen, b, place, sums, n_vectors, width, at_once):
    """Write eight partial sums of each product of some items with a user's vectors, item by item."""
    sizes = (n_vectors, width, at_once)
    if not all(isinstance(size, types.IntegerLiteral) for size in sizes):
        raise RequireLiteralValue("n_vectors, width and at_once must be constants")
    count, row, together = (size.literal_value for size in sizes)
    index = types.int64
    signature = types.void(users, index, items, chosen, index, index, sums, n_vectors, width, at_once)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(k: int) -> Any:
            return arrayobj.make_array(signature.args[k])(context, builder, args[k]).data

        listed = arrayobj.make_array(signature.args[3])(context, builder, args[3])
        begin = builder.add(builder.mul(args[4], builder.extract_value(listed.shape, 1)), args[5])
        mine = _at(builder, data(0), builder.mul(args[1], INDEX(row)))
        theirs = []
        for t in range(together):
            item = builder.load(_at(builder, listed.data, builder.add(begin, INDEX(t))))
            theirs.append(_at(builder, data(2), builder.mul(builder.sext(item, INDEX), INDEX(row))))
        out = _at(builder, data(6), builder.mul(args[5], INDEX(count * LANES)))
        for group in range(0, count, LANES):  # more sums than that do not fit into registers
            members = range(group, min(group + LANES, count))
            for t, found in enumerate(_dot_products(builder, mine, theirs, members, row)):
                for c, values in zip(members, found, strict=True):
                    builder.store(values, _vector(builder, out, (t * count + c) * LANES)).align = 4
        return context.get_dummy_value()

    return signature, codegen


def _dot_products(builder: Any, mine: Any, theirs: Any, members: range, row: int) -> list[list[Any]]:
    """Emit the partial sums of each item (outer) with each vector (inner), one per lane."""
    sums: list[list[Any]] = [[None] * len(members) for _ in theirs]
    for k in range(0, row, LANES):
        loaded = [_load(builder, item, k) for item in theirs]
        for place, c in enumerate(members):
            vector = _load(builder, mine, c * row + k)
            for t, item in enumerate(loaded):
                product = builder.fmul(vector, item, flags=FAST)
                sums[t][place] = product if k == 0 else builder.fadd(sums[t][place], product, flags=FAST)
    return sums


@intrinsic
def _reduced(typing, sums, first, step):
    """Return the totals of eight rows ``first, first + step, ...``, one per lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        rows = [builder.add(args[1], builder.mul(args[2], INDEX(t))) for t in range(LANES)]
        return _sums_of_lanes(
            builder, [_load(builder, _at(builder, data, builder.mul(row, INDEX(LANES))), 0) for row in rows]
        )

    return lanes_type(sums, types.int64, types.int64), codegen


def _sums_of_lanes(builder: Any, vectors: list[Any]) -> Any:
    """Emit one vector whose lane t is the sum of the lanes of vector t, by pairwise additions."""
    level = vectors
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


def _at(builder: Any, pointer: Any, offset: Any) -> Any:
    return builder.gep(pointer, [offset])


def _vector(builder: Any, pointer: Any, offset: int) -> Any:
    return builder.bitcast(_at(builder, pointer, INDEX(offset)), VECTOR.as_pointer())


def _load(builder: Any, pointer: Any, offset: int) -> Any:
    value = builder.load(_vector(builder, pointer, offset))
    value.align = 4
    return value
