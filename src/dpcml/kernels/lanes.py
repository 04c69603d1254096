"""Eight float32 numbers at a time, as a value that compiled loops can add, multiply, load and store.

The compiler's own vectoriser leaves the last numbers of a row to a slow loop and reduces sums one by one; rows here are
padded to whole vectors, so loops over lanes need neither. LLVM maps the type to whatever the processor has.

    for k in range(0, width, LANES):
        store(out, row, k, load(a, row, k) * factor + load(b, row, k))
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np import arrayobj

LANES = 8
A_LINE = 2 * LANES  # numbers in a cache line
FAST = ("contract",)  # a product and a sum may become one instruction; nothing is reordered

FLOAT, INT, INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float32x8")


lanes_type = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def padded(dim: int) -> int:
    """Return the length of a row: the dimension, rounded up to whole vectors.

    Examples
    --------
    >>> padded(100), padded(8)
    (104, 8)
    """
    return -(-dim // LANES) * LANES


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return the address of element (row, column) of a C-ordered array, as that of a vector."""
    array = arrayobj.make_array(signature.args[0])(context, builder, args[0])
    width = builder.extract_value(array.shape, 1)
    offset = builder.add(builder.mul(args[1], width), args[2])
    return builder.bitcast(builder.gep(array.data, [offset]), VECTOR.as_pointer())


@intrinsic
def load(typing, array, row, column):
    """Return eight numbers of a row, from ``column`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_place(context, builder, signature, args))
        value.align = 4
        return value

    return lanes_type(array, types.int64, types.int64), codegen


@intrinsic
def store(typing, array, row, column, value):
    """Write eight numbers into a row, from ``column`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[3], _place(context, builder, signature, args)).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, value), codegen


@intrinsic
def fetch_to_read(typing, array, row, column):
    """Ask for the cache line of an element that will be read soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fetch(context, builder, _place(context, builder, signature, args), for_writing=False)

    return types.void(array, types.int64, types.int64), codegen


@intrinsic
def fetch_to_write(typing, array, row, column):
    """Ask for the cache line of an element that will be changed soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fetch(context, builder, _place(context, builder, signature, args), for_writing=True)

    return types.void(array, types.int64, types.int64), codegen


@intrinsic
def fetch_word(typing, array, place):
    """Ask for the cache line of an element of a list that will be read soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return _fetch(context, builder, builder.gep(data, [args[1]]), for_writing=False)

    return types.void(array, types.int64), codegen


def _fetch(context: Any, builder: Any, place: Any, *, for_writing: bool) -> Any:
    pointer, name = ir.IntType(8).as_pointer(), "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [pointer, INT, INT, INT])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [builder.bitcast(place, pointer), INT(int(for_writing)), INT(2), INT(1)])  # all caches, data
    return context.get_dummy_value()


@intrinsic
def splat(typing, number):
    """Return eight times the same number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), args[0], INT(0))
        return shuffle(builder, one, one, [0] * LANES)

    return lanes_type(types.float32), codegen


@intrinsic
def root(typing, value):
    """Return the square roots."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(VECTOR, [VECTOR])
        function = builder.module.globals.get("llvm.sqrt.v8f32") or ir.Function(builder.module, kind, "llvm.sqrt.v8f32")
        return builder.call(function, args)

    return lanes_type(lanes_type), codegen


@intrinsic
def smaller(typing, a, b):
    """Return the smaller of two numbers in each lane; where one is NaN, the second."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return lanes_type(lanes_type, lanes_type), codegen


@intrinsic
def total(typing, value):
    """Return the sum of the eight numbers, by halves."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return fold(builder, args[0], builder.fadd)

    return types.float32(lanes_type), codegen


def shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """Emit the vector of some lanes of two vectors."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(lanes)), lanes))


def fold(builder: Any, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Emit the combination of all lanes: upper half with lower half, until one is left."""
    lanes = LANES
    while lanes > 1:
        half = lanes // 2
        low = shuffle(builder, vector, vector, list(range(half)))
        high = shuffle(builder, vector, vector, list(range(half, lanes)))
        vector, lanes = combine(low, high), half
    return builder.extract_element(vector, INT(0))


def _define(symbol: Callable[..., Any], instruction: str) -> None:
    """Give two vectors an operator."""

    @type_callable(symbol)
    def of_two(context):
        return lambda a, b: lanes_type if isinstance(a, _Lanes) and isinstance(b, _Lanes) else None

    @lower_builtin(symbol, _Lanes, _Lanes)
    def compute(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=FAST)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, _instruction)
