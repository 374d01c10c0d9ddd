"""What the loop form of the `partir` dialect computes: PartIR's loops, run one iteration after
another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..partir_dialect.partir import LoopOp
from ..partir_dialect.partir_attributes import ReduceAction, TileAttr
from . import numbers
from .attributes import integer, result_shape, shape_of, text
from .compiler import Column, Compiler, Context, Frame, Lanes, execute
from .registry import Array, Kernel, binary, controls, implements
from .shapes import pad

REDUCERS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def identity(reducer: str, dtype: np.dtype[Any]) -> Array:
    """The element that `reducer` leaves everything unchanged with."""
    wide = numbers.wide(dtype)
    if reducer in ("add", "or", "mul"):
        value: Any = 1 if reducer == "mul" else 0
    elif dtype == numbers.BOOL:
        value = reducer in ("and", "min")
    elif numbers.is_integer(dtype):
        value = _integer_identity(reducer, dtype)
    else:
        value = -np.inf if reducer == "max" else np.inf
    return np.asarray(value).astype(wide).astype(dtype)


def _integer_identity(reducer: str, dtype: np.dtype[Any]) -> int:
    width, signed = numbers.bits(dtype), numbers.is_signed(dtype)
    if reducer == "and":
        return -1 if signed else (1 << width) - 1
    if reducer == "max":
        return -(1 << (width - 1)) if signed else 0
    return (1 << (width - 1)) - 1 if signed else (1 << width) - 1


def combine(reducer: str, values: Sequence[Array]) -> Array:
    """All values combined in order; narrow floats in f32, rounded once."""
    dtype = values[0].dtype
    wide = numbers.wide(dtype)
    total = values[0].astype(wide)
    for value in values[1:]:
        total = REDUCERS[reducer](total, value.astype(wide))
    return numbers.narrow(np.asarray(total), dtype)


def tile(a: Array, dimension: int, count: int, index: int) -> Array:
    """Tile `index` of `count` along a dimension: ceil(size / count) elements, zeros at the end."""
    size = -(-a.shape[dimension] // count)
    begin = min(index * size, a.shape[dimension])
    part = a[(slice(None),) * dimension + (slice(begin, begin + size),)]
    return extend(part, dimension, size)


def extend(a: Array, dimension: int, size: int) -> Array:
    """Adds zeros at the tail of a dimension, up to `size`."""
    missing = size - a.shape[dimension]
    if not missing:
        return a
    none = [0] * a.ndim
    high = none.copy()
    high[dimension] = missing
    return pad(a, np.zeros((), a.dtype), none, high, none)


def join(tiles: Sequence[Array], dimension: int, size: int) -> Array:
    """The tiles one after the other, the padding at the tail dropped."""
    whole = np.concatenate(tiles, axis=dimension)
    return whole[(slice(None),) * dimension + (slice(0, size),)]


@controls("partir.loop")
def _loop(op: LoopOp, compiler: Compiler) -> Callable[[Frame, Lanes], None]:
    code = compiler.region(op.body)
    actions, count = op.action_list, op.size
    results = [compiler.slot(value) for value in op.results]
    shapes = [shape_of(value.type) for value in op.results]
    devices = compiler.program.devices

    def run(frame: Frame, lanes: Lanes) -> None:
        rounds: list[list[Column]] = []
        for index in range(count):
            frame[code.arguments[0]] = [np.asarray(index)] * devices
            execute(code, frame, lanes)
            rounds.append([frame[slot] for slot in code.returns])
        for k, (slot, action) in enumerate(zip(results, actions, strict=True)):
            column: Column = [None] * devices
            for lane in lanes:
                column[lane] = _joined(action, [r[k][lane] for r in rounds], shapes[k])
            frame[slot] = column

    return run


def _joined(action: object, values: list[Array], shape: Sequence[int]) -> Array:
    if isinstance(action, TileAttr):
        return join(values, action.dim, shape[action.dim])
    if isinstance(action, ReduceAction):
        return combine(action.reducer, values)
    return values[0]


def _size(op: Operation) -> int:
    return op.loop.size  # type: ignore[attr-defined]


@implements("partir.slice")
def _slice(op: Operation, context: Context) -> Kernel:
    dimension, count = integer(op, "dimension"), _size(op)
    return binary(lambda a, index: tile(a, dimension, count, int(index)))


@implements("partir.embed")
def _embed(op: Operation, context: Context) -> Kernel:
    dimension, shape = integer(op, "dimension"), result_shape(op)
    neutral = identity(text(op, "reducer"), context.dtype(op.results[0].type))

    def kernel(a: Array, index: Array) -> Array:
        whole = np.full(shape, neutral, a.dtype)
        begin = int(index) * a.shape[dimension]
        size = max(0, min(a.shape[dimension], shape[dimension] - begin))
        front = (slice(None),) * dimension
        whole[(*front, slice(begin, begin + size))] = a[(*front, slice(0, size))]
        return whole

    return kernel


@implements("partir.once")
def _once(op: Operation, context: Context) -> Kernel:
    neutral = identity(text(op, "reducer"), context.dtype(op.results[0].type))
    return binary(lambda a, index: a if int(index) == 0 else np.broadcast_to(neutral, a.shape))
