"""SIMD: a type of eight float32 lanes for compiled loops, distances in registers, and prefetches.

LLVM's vectoriser chooses width and order of a sum by itself, for each processor and loop. This type fixes both: lane t
sums the elements t, t + 8, ... Rows are padded to whole vectors, so that the last elements need no scalar loop. LLVM
maps the type to the registers that the processor has. Likewise `multiply_add` says which product is added without
rounding it first: left to LLVM, that depends on how far it unrolls a loop, and so on the processor. Loops without sums
are left to Numba; ``python -m benchmarks simd`` measures what each part of this file saves.

    for k in range(0, width, LANES):
        store(out, row, k, multiply_add(load(a, row, k), factor, load(b, row, k)))
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np import arrayobj

from dpcml.utils.arrays import CACHE_LINE

LANES = 8
FLOATS_PER_LINE = CACHE_LINE // 4

INT32, INT64 = ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(ir.FloatType(), LANES)
FUSED = "llvm.fmuladd.v8f32"


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float32x8")


lanes_type = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def padded(dim: int) -> int:
    """Return the width of a row: the dimension, rounded up to whole vectors.

    Examples
    --------
    >>> padded(100), padded(8)
    (104, 8)
    """
    return -(-dim // LANES) * LANES


# Helpers that emit LLVM instructions


def _data(context: Any, builder: Any, signature: Any, args: Any, k: int) -> Any:
    """Emit the pointer to the first element of array argument ``k``."""
    return arrayobj.make_array(signature.args[k])(context, builder, args[k]).data


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Emit the address of element (row, column) of a C-ordered array, as that of a vector."""
    array = arrayobj.make_array(signature.args[0])(context, builder, args[0])
    width = builder.extract_value(array.shape, 1)
    offset = builder.add(builder.mul(args[1], width), args[2])
    return builder.bitcast(builder.gep(array.data, [offset]), VECTOR.as_pointer())


def _vector_at(builder: Any, pointer: Any, offset: int) -> Any:
    return builder.bitcast(builder.gep(pointer, [INT64(offset)]), VECTOR.as_pointer())


def _load_at(builder: Any, pointer: Any, offset: int) -> Any:
    value = builder.load(_vector_at(builder, pointer, offset))
    value.align = 4
    return value


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """Emit a vector of some lanes of two vectors."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, len(lanes)), lanes))


def _call(builder: Any, name: str, kind: Any, args: Any) -> Any:
    """Emit the call of an LLVM intrinsic whose arguments and result are of one type."""
    found = builder.module.globals.get(name)
    return builder.call(found or ir.Function(builder.module, ir.FunctionType(kind, [kind] * len(args)), name), args)


# Operations on eight lanes


@intrinsic
def load(typing, array, row, column):
    """Return eight elements of a row, from ``column`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_element(context, builder, signature, args))
        value.align = 4
        return value

    return lanes_type(array, types.int64, types.int64), codegen


@intrinsic
def store(typing, array, row, column, value):
    """Write eight elements of a row, from ``column`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[3], _element(context, builder, signature, args)).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, value), codegen


@intrinsic
def splat(typing, number):
    """Return eight lanes with the same number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), args[0], INT32(0))
        return _shuffle(builder, one, one, [0] * LANES)

    return lanes_type(types.float32), codegen


@intrinsic
def sqrt(typing, value):
    """Return the square root of each lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.sqrt.v8f32", VECTOR, args)

    return lanes_type(lanes_type), codegen


@intrinsic
def multiply_add(typing, a, b, c):
    """Return ``a * b + c`` of float32 numbers or lanes, rounded once on processors that can (FMA), twice on others."""
    kinds = {types.float32: ("llvm.fmuladd.f32", ir.FloatType()), lanes_type: (FUSED, VECTOR)}
    if not a == b == c or a not in kinds:
        return None
    name, kind = kinds[a]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, name, kind, args)

    return a(a, b, c), codegen


@intrinsic
def minimum(typing, a, b):
    """Return the smaller number in each lane; where one is NaN, the second."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return lanes_type(lanes_type, lanes_type), codegen


@intrinsic
def total(typing, value):
    """Return the sum of the lanes: upper half plus lower half, until one is left."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, lanes = args[0], LANES
        while lanes > 1:
            half = lanes // 2
            low = _shuffle(builder, vector, vector, list(range(half)))
            high = _shuffle(builder, vector, vector, list(range(half, lanes)))
            vector, lanes = builder.fadd(low, high), half
        return builder.extract_element(vector, INT32(0))

    return types.float32(lanes_type), codegen


def _define(symbol: Callable[..., Any], instruction: str) -> None:
    """Define an arithmetic operator of two vectors."""

    @type_callable(symbol)
    def of_two(context):
        return lambda a, b: lanes_type if isinstance(a, _Lanes) and isinstance(b, _Lanes) else None

    @lower_builtin(symbol, _Lanes, _Lanes)
    def compute(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, _instruction)


# Prefetches


def _prefetch(context: Any, builder: Any, address: Any, *, write: bool) -> Any:
    pointer, name = ir.IntType(8).as_pointer(), "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    locality, data_cache = INT32(2), INT32(1)
    builder.call(function, [builder.bitcast(address, pointer), INT32(int(write)), locality, data_cache])
    return context.get_dummy_value()


@intrinsic
def prefetch(typing, array, index):
    """Prefetch the cache line of an element of a 1-d array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.gep(_data(context, builder, signature, args, 0), [args[1]])
        return _prefetch(context, builder, address, write=False)

    return types.void(array, types.int64), codegen


@intrinsic
def prefetch_row(typing, array, row, column):
    """Prefetch the cache line of element (row, column)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, _element(context, builder, signature, args), write=False)

    return types.void(array, types.int64, types.int64), codegen


@intrinsic
def prefetch_row_for_write(typing, array, row, column):
    """Prefetch the cache line of element (row, column), which will be changed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, _element(context, builder, signature, args), write=True)

    return types.void(array, types.int64, types.int64), codegen


# Distances of several items to all vectors of a user: most of the training time


def items_at_once(n_vectors: int) -> int:
    """Return the number of items that share a pass over the user's vectors: as many as the registers have room for."""
    return max(1, min(4, 10 // min(n_vectors, LANES)))


@njit(inline="always")
def nearest_distances(users, user, items, chosen, b, sums, near, n_vectors, width, at_once):
    """Compute the squared distances of the items ``chosen[b]`` to each of a user's vectors, without the items' norms.

    The products of the vectors with several items are accumulated in registers, in eight lanes each. Then the lanes of
    eight products are summed together, so that each lane of the result belongs to an item.

    Parameters
    ----------
    users, user
        `EmbeddingTable` of the users, and a user's number.
    items
        Vectors, shape (items, width).
    chosen, b
        int32 array of shape (batch, columns) and a row of it; columns are a multiple of ``at_once``.
    sums
        Buffer of shape (columns * vectors, lanes), columns rounded up to a multiple of the lanes.
    near
        Output of shape (1 + vectors, columns): ``|users[user, c]|^2 - 2 <users[user, c], item>`` in row 1 + c, and the
        minimum over c in row 0.
    n_vectors, width, at_once
        Compile-time constants.
    """
    columns, first = chosen.shape[1], user * n_vectors
    vectors, squares = users.vectors, users.squares
    for column in range(0, columns, at_once):
        _products(vectors, first, items, chosen, b, column, sums, n_vectors, width, at_once)
    minus_two = splat(np.float32(-2))
    for column in range(0, columns, LANES):
        lowest = splat(np.float32(np.inf))
        for c in range(n_vectors):
            product = _sum_rows(sums, column * n_vectors + c, n_vectors)
            distance = multiply_add(minus_two, product, splat(squares[first + c]))
            store(near, 1 + c, column, distance)
            lowest = minimum(distance, lowest)
        store(near, 0, column, lowest)


@intrinsic(prefer_literal=True)
def _products(typing, users, first, items, chosen, b, column, sums, n_vectors, width, at_once):
    """Write the eight partial sums of each inner product of some items with the user's vectors, item by item."""
    sizes = (n_vectors, width, at_once)
    if not all(isinstance(size, types.IntegerLiteral) for size in sizes):
        raise RequireLiteralValue("n_vectors, width and at_once must be constants")
    count, row, together = (size.literal_value for size in sizes)
    index = types.int64
    signature = types.void(users, index, items, chosen, index, index, sums, n_vectors, width, at_once)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = arrayobj.make_array(signature.args[3])(context, builder, args[3])
        begin = builder.add(builder.mul(args[4], builder.extract_value(table.shape, 1)), args[5])
        user = builder.gep(_data(context, builder, signature, args, 0), [builder.mul(args[1], INT64(row))])
        item_data = _data(context, builder, signature, args, 2)
        item_rows = []
        for t in range(together):
            item = builder.load(builder.gep(table.data, [builder.add(begin, INT64(t))]))
            item_rows.append(builder.gep(item_data, [builder.mul(builder.sext(item, INT64), INT64(row))]))
        offset = builder.mul(args[5], INT64(count * LANES))
        out = builder.gep(_data(context, builder, signature, args, 6), [offset])
        for group in range(0, count, LANES):  # more sums would not fit into registers
            members = range(group, min(group + LANES, count))
            for t, found in enumerate(_dot_products(builder, user, item_rows, members, row)):
                for c, values in zip(members, found, strict=True):
                    builder.store(values, _vector_at(builder, out, (t * count + c) * LANES)).align = 4
        return context.get_dummy_value()

    return signature, codegen


def _dot_products(builder: Any, user: Any, item_rows: Any, members: range, row: int) -> list[list[Any]]:
    """Emit the partial sums of each item (outer list) with each of the user's vectors (inner list)."""
    sums: list[list[Any]] = [[None] * len(members) for _ in item_rows]
    for k in range(0, row, LANES):
        loaded = [_load_at(builder, item, k) for item in item_rows]
        for place, c in enumerate(members):
            vector = _load_at(builder, user, c * row + k)
            for t, item in enumerate(loaded):
                if k == 0:
                    sums[t][place] = builder.fmul(vector, item)
                else:
                    sums[t][place] = _call(builder, FUSED, VECTOR, [vector, item, sums[t][place]])
    return sums


@intrinsic
def _sum_rows(typing, sums, first, step):
    """Return the totals of the eight rows ``first, first + step, ...``, one per lane, by pairwise additions."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature, args, 0)
        rows = [builder.add(args[1], builder.mul(args[2], INT64(t))) for t in range(LANES)]
        level = [_load_at(builder, builder.gep(data, [builder.mul(row, INT64(LANES))]), 0) for row in rows]
        for _ in range(2):  # neighbours within halves: a0+a1 a2+a3 b0+b1 b2+b3 | the same of the upper halves
            level = [
                builder.fadd(
                    _shuffle(builder, a, b, [0, 2, 8, 10, 4, 6, 12, 14]),
                    _shuffle(builder, a, b, [1, 3, 9, 11, 5, 7, 13, 15]),
                )
                for a, b in zip(level[::2], level[1::2], strict=True)
            ]
        low, high = level
        return builder.fadd(
            _shuffle(builder, low, high, [0, 1, 2, 3, 8, 9, 10, 11]),
            _shuffle(builder, low, high, [4, 5, 6, 7, 12, 13, 14, 15]),
        )

    return lanes_type(sums, types.int64, types.int64), codegen
