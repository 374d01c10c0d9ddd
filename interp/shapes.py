"""What the ops that move data compute: broadcast, reshape, slice, pad, concatenate and so on."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import find, integer, integers, need, number, operand_shape, result_shape, values
from .compiler import Context, Token, Tuple
from .faults import InterpreterError
from .quantised import Quantised, quantised
from .registry import Array, Kernel, binary, implements, implements_elementwise, nullary, unary

# ----------------------------------------------------------------------------- pure functions


def broadcast_in_dim(a: Array, shape: Sequence[int], dims: Sequence[int]) -> Array:
    """Puts dimension i of `a` at dimension dims[i] of `shape`, repeating the rest."""
    order = np.argsort(dims, kind="stable")
    middle = [1] * len(shape)
    for source in order:
        middle[dims[source]] = a.shape[source]
    return np.broadcast_to(np.transpose(a, order).reshape(middle), tuple(shape))


def slice_(a: Array, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Array:
    """`a[start:limit:stride, …]`."""
    return a[tuple(map(slice, start, limit, strides))]


def clamp_start(
    start: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]
) -> tuple[int, ...]:
    """Start indices moved so that the slice lies inside."""
    return tuple(
        max(0, min(int(index), extent - size))
        for index, extent, size in zip(start, shape, sizes, strict=True)
    )


def dynamic_slice(a: Array, start: Sequence[Any], sizes: Sequence[int]) -> Array:
    """A slice at runtime indices, clamped into the operand."""
    begin = clamp_start(start, a.shape, sizes)
    return a[tuple(slice(b, b + s) for b, s in zip(begin, sizes, strict=True))]


def dynamic_update_slice(
    a: Array, update: Array, start: Sequence[Any], *, in_place: bool = False
) -> Array:
    """A copy of `a` (or `a` itself) with `update` written at runtime indices, clamped into it."""
    begin = clamp_start(start, a.shape, update.shape)
    result = a if in_place else a.copy()
    result[tuple(slice(b, b + s) for b, s in zip(begin, update.shape, strict=True))] = update
    return result


def pad(
    a: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Array:
    """Adds `low` and `high` elements at the edges (removes, if negative), `interior` between."""
    dilated = [n + max(n - 1, 0) * i for n, i in zip(a.shape, interior, strict=True)]
    shape = [max(0, lo + n + hi) for lo, n, hi in zip(low, dilated, high, strict=True)]
    result = np.full(shape, value, a.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for extent, lo, size, inner in zip(a.shape, low, shape, interior, strict=True):
        step = inner + 1
        first = max(0, -(lo // step)) if lo < 0 else 0  # the first element at or after the edge
        last = min(extent, (size - 1 - lo) // step + 1) if size else 0
        if last <= first:
            return result
        source.append(slice(first, last))
        begin = lo + first * step
        target.append(slice(begin, begin + (last - first - 1) * step + 1, step))
    result[tuple(target)] = a[tuple(source)]
    return result


def iota(shape: Sequence[int], dimension: int, dtype: np.dtype[Any]) -> Array:
    """The position along `dimension`, everywhere."""
    count = np.arange(shape[dimension])
    line = count.astype(dtype) if dtype.kind != "V" else numbers.convert(count, dtype)
    side = [1] * len(shape)
    side[dimension] = shape[dimension]
    return np.broadcast_to(line.reshape(side), tuple(shape))


# ----------------------------------------------------------------------------- constants, iota


@implements("stablehlo.constant", "chlo.constant", "sdy.constant")
def _constant(op: Operation, context: Context) -> Kernel:
    found = quantised(op.results[0].type)
    if found is not None:
        return nullary(_stored(need(op, "value"), found, result_shape(op)))
    value = values(need(op, "value"))
    stored = context.dtype(op.results[0].type)
    if value.dtype != stored:
        shape = value.shape
        value = (
            np.broadcast_to(value.reshape(-1)[:1].astype(stored), shape)
            if _splat(value)
            else value.astype(stored)
        )
        value = value.reshape(shape)
    return nullary(value)


def _stored(attribute: Any, found: Quantised, shape: Sequence[int]) -> Array:
    flat = np.frombuffer(attribute.data.data, found.storage)
    return np.broadcast_to(flat, shape) if flat.size == 1 else flat.reshape(shape)


def _splat(value: Array) -> bool:
    return value.size > 1 and not any(value.strides)


@implements("stablehlo.iota")
def _iota(op: Operation, context: Context) -> Kernel:
    value = iota(result_shape(op), integer(op, "iota_dimension"), context.dtype(op.results[0].type))
    return nullary(value)


@implements("stablehlo.dynamic_iota")
def _dynamic_iota(op: Operation, context: Context) -> Kernel:
    dimension, dtype = integer(op, "iota_dimension"), context.dtype(op.results[0].type)
    return unary(lambda shape: iota([int(n) for n in shape], dimension, dtype))


@implements("chlo.constant_like")
def _constant_like(op: Operation, context: Context) -> Kernel:
    attribute = need(op, "value")
    dtype = context.dtype(op.results[0].type)
    value = np.array(attribute.value.data).astype(dtype)
    return unary(lambda a: np.broadcast_to(value, a.shape))


# ----------------------------------------------------------------------------- views


@implements("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(op: Operation, context: Context) -> Kernel:
    shape, dims = result_shape(op), integers(op, "broadcast_dimensions")
    return unary(lambda a: broadcast_in_dim(a, shape, dims))


@implements("stablehlo.dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(op: Operation, context: Context) -> Kernel:
    dims = integers(op, "broadcast_dimensions")
    return binary(lambda a, shape: broadcast_in_dim(a, [int(n) for n in shape], dims))


@implements("stablehlo.broadcast")
def _broadcast(op: Operation, context: Context) -> Kernel:
    sizes = integers(op, "broadcast_sizes")
    return unary(lambda a: np.broadcast_to(a, (*sizes, *a.shape)))


@implements("stablehlo.reshape")
def _reshape(op: Operation, context: Context) -> Kernel:
    shape = result_shape(op)
    return unary(lambda a: a.reshape(shape))


@implements("stablehlo.dynamic_reshape")
def _dynamic_reshape(op: Operation, context: Context) -> Kernel:
    return binary(lambda a, shape: a.reshape([int(n) for n in shape]))


@implements("stablehlo.transpose")
def _transpose(op: Operation, context: Context) -> Kernel:
    permutation = integers(op, "permutation")
    return unary(lambda a: np.transpose(a, permutation))


@implements("stablehlo.reverse")
def _reverse(op: Operation, context: Context) -> Kernel:
    dims = integers(op, "dimensions")
    return unary(lambda a: np.flip(a, dims) if dims else a)


@implements("stablehlo.bitcast_convert")
def _bitcast_convert(op: Operation, context: Context) -> Kernel:
    source, target = op.operands[0].type, op.results[0].type
    declared, result = context.declared(source), context.declared(target)
    stored, shape = context.dtype(target), result_shape(op)

    def kernel(a: Array) -> Array:
        return numbers.bitcast(a.astype(declared, copy=False), result, shape).astype(
            stored, copy=False
        )

    return kernel


# ----------------------------------------------------------------------------- slices


@implements("stablehlo.slice")
def _slice(op: Operation, context: Context) -> Kernel:
    start, limit = integers(op, "start_indices"), integers(op, "limit_indices")
    strides = integers(op, "strides", (1,) * len(start))
    return unary(lambda a: slice_(a, start, limit, strides))


@implements("stablehlo.real_dynamic_slice")
def _real_dynamic_slice(op: Operation, context: Context) -> Kernel:

    def kernel(a: Array, start: Array, limit: Array, strides: Array) -> Array:
        return slice_(a, start.tolist(), limit.tolist(), strides.tolist())

    return kernel


@implements("stablehlo.dynamic_slice")
def _dynamic_slice(op: Operation, context: Context) -> Kernel:
    sizes = integers(op, "slice_sizes")

    def kernel(a: Array, *start: Array) -> Array:
        return dynamic_slice(a, start, sizes)

    return kernel


@implements("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(op: Operation, context: Context) -> Kernel:
    in_place = op in context.program.in_place

    def kernel(a: Array, update: Array, *start: Array) -> Array:
        return dynamic_update_slice(a, update, start, in_place=in_place)

    return kernel


@implements("stablehlo.pad")
def _pad(op: Operation, context: Context) -> Kernel:
    low, high = integers(op, "edge_padding_low"), integers(op, "edge_padding_high")
    interior = integers(op, "interior_padding")
    return binary(lambda a, value: pad(a, value, low, high, interior))


@implements("stablehlo.dynamic_pad")
def _dynamic_pad(op: Operation, context: Context) -> Kernel:

    def kernel(a: Array, value: Array, low: Array, high: Array, interior: Array) -> Array:
        return pad(a, value, low.tolist(), high.tolist(), interior.tolist())

    return kernel


@implements("stablehlo.concatenate")
def _concatenate(op: Operation, context: Context) -> Kernel:
    dimension = integer(op, "dimension")

    def kernel(*arrays: Array) -> Array:
        return np.concatenate(arrays, axis=dimension)

    return kernel


@implements("stablehlo.torch_index_select")
def _torch_index_select(op: Operation, context: Context) -> Kernel:
    dimension, batch = integer(op, "dim"), integer(op, "batch_dims", 0)

    def select(a: Array, index: Array) -> Array:
        return np.take(a, np.clip(index, 0, a.shape[dimension - batch] - 1), axis=dimension - batch)

    def kernel(a: Array, index: Array) -> Array:
        if not batch:
            return select(a, index)
        lead = a.shape[:batch]
        rows = zip(
            a.reshape(prod(lead), *a.shape[batch:]),
            index.reshape(prod(lead), *index.shape[batch:]),
            strict=True,
        )
        return np.stack([select(x, i) for x, i in rows]).reshape(result_shape(op))

    return kernel


# ----------------------------------------------------------------------------- sizes


@implements("stablehlo.get_dimension_size")
def _get_dimension_size(op: Operation, context: Context) -> Kernel:
    dimension = integer(op, "dimension")
    return unary(lambda a: np.array(a.shape[dimension], np.int32))


@implements("stablehlo.set_dimension_size")
def _set_dimension_size(op: Operation, context: Context) -> Kernel:
    dimension, full = integer(op, "dimension"), operand_shape(op, 0)

    def kernel(a: Array, size: Array) -> Array:
        if int(size) != full[dimension]:
            raise InterpreterError(
                f"a dimension of dynamic size is not supported, got: {int(size)}"
            )
        return a

    return kernel


# ----------------------------------------------------------------------------- tuples, tokens


@implements("stablehlo.tuple")
def _tuple(op: Operation, context: Context) -> Kernel:

    def kernel(*items: Any) -> list[Tuple]:
        return [Tuple(items)]

    return kernel


@implements("stablehlo.get_tuple_element")
def _get_tuple_element(op: Operation, context: Context) -> Kernel:
    index = integer(op, "index")
    return unary(lambda items: [items[index]])


@implements("stablehlo.create_token", "stablehlo.after_all")
def _token(op: Operation, context: Context) -> Kernel:

    def kernel(*tokens: Any) -> list[Token]:
        return [Token()]

    return kernel


# ----------------------------------------------------------------------------- identities


@implements_elementwise(
    "partir.replicate",
    "partir.stop",
    "sdy.sharding_constraint",
    "sdy.reshard",
    "sdy.propagation_barrier",
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.all_gather",  # these change where a value is, not what it is
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
)
def _same(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: [a])


@implements("sdy.sharding_group")
def _nothing(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: [])


def optional_number(op: Operation, name: str) -> int | None:
    """An integer property, or None."""
    found = find(op, name)
    return None if found is None else number(found)
