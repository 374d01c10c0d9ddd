"""What `gather` and `scatter` compute: index arithmetic on flat positions, nothing element by
element.

A gather clamps its windows into the operand. A scatter skips what falls outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import integers, need, result_shape
from .bodies import Body
from .compiler import Context
from .registry import Array, Kernel, binary, implements, ternary


@dataclass(frozen=True)
class Numbers:
    """The dimension numbers of a gather or scatter under one set of names.

    `window` are the result's (or updates') window dimensions, `collapsed` the operand dimensions
    that windows do not have, `batching` the operand's batching dimensions, `index_batching` the
    indices'.
    """

    window: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    index_map: tuple[int, ...]
    vector: int


def _starts(indices: Array, rank: int, numbers_: Numbers) -> list[Array]:
    """For each operand dimension where the window of each index begins, over the index batch."""
    if numbers_.vector == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, numbers_.vector, -1)
    batch = vectors.shape[:-1]
    starts: list[Array] = [np.zeros((), np.int64)] * rank
    for position, dimension in enumerate(numbers_.index_map):
        starts[dimension] = _signed(vectors[..., position])
    for operand_dim, index_dim in zip(numbers_.batching, numbers_.index_batching, strict=True):
        place = index_dim - (index_dim > numbers_.vector)
        side = [1] * len(batch)
        side[place] = batch[place]
        starts[operand_dim] = np.arange(batch[place], dtype=np.int64).reshape(side)
    return [np.broadcast_to(start, batch) for start in starts]


def _signed(a: Array) -> Array:
    """Indices as int64; what uint64 cannot say there is as far out of bounds as can be."""
    if a.dtype == np.uint64:
        return np.minimum(a, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
    return numbers.convert(a, np.dtype(np.int64))


def _arranged(
    starts: list[Array], sizes: Sequence[int], numbers_: Numbers, rank: int
) -> tuple[list[Array], list[Array]]:
    """Starts and offsets for each operand dimension, shaped to broadcast to the result."""
    batch_dims = [d for d in range(rank) if d not in numbers_.window]
    batch_shape = [1] * rank
    for dimension, size in zip(batch_dims, starts[0].shape if starts else (), strict=False):
        batch_shape[dimension] = size
    begin = [start.reshape(batch_shape) for start in starts]
    kept = [d for d in range(len(sizes)) if d not in (*numbers_.collapsed, *numbers_.batching)]
    offsets = [np.zeros((1,) * rank, np.int64)] * len(sizes)
    for dimension, operand_dim in zip(numbers_.window, kept, strict=True):
        side = [1] * rank
        side[dimension] = sizes[operand_dim]
        offsets[operand_dim] = np.arange(sizes[operand_dim]).reshape(side)
    return begin, offsets


def gather(a: Array, indices: Array, numbers_: Numbers, sizes: Sequence[int], rank: int) -> Array:
    """Windows of `sizes` of the operand at clamped start indices; the result has `rank` dims."""
    starts = _starts(indices, a.ndim, numbers_)
    clamped = [
        np.clip(start, 0, max(0, extent - size))
        for start, extent, size in zip(starts, a.shape, sizes, strict=True)
    ]
    begin, offsets = _arranged(clamped, sizes, numbers_, rank)
    if not a.ndim:
        return np.broadcast_to(a, indices.shape[:rank])
    position = tuple(b + o for b, o in zip(begin, offsets, strict=True))
    return a[position]


@dataclass(frozen=True)
class Targets:
    """Where each element of the updates goes: flat operand positions, and which are inside."""

    flat: Array
    inside: Array


def scatter_targets(
    shape: Sequence[int], indices: Array, updates_shape: Sequence[int], numbers_: Numbers
) -> Targets:
    """The targets of a scatter into an operand of `shape`. A window that is partly outside of the
    operand is skipped as a whole, as XLA does it."""
    rank = len(updates_shape)
    starts = _starts(indices, len(shape), numbers_)
    sizes = _window_sizes(shape, updates_shape, numbers_)
    begin, offsets = _arranged(starts, sizes, numbers_, rank)
    flat = np.zeros((1,) * rank, np.int64)
    inside = np.ones((1,) * rank, np.bool_)
    stride = prod(shape)
    for b, o, extent, size in zip(begin, offsets, shape, sizes, strict=True):
        stride //= max(extent, 1)
        inside = inside & (b >= 0) & (b <= extent - size)
        flat = flat + (np.clip(b, 0, max(extent - size, 0)) + o) * stride
    return Targets(
        np.broadcast_to(flat, updates_shape).reshape(-1),
        np.broadcast_to(inside, updates_shape).reshape(-1),
    )


def _window_sizes(
    shape: Sequence[int], updates_shape: Sequence[int], numbers_: Numbers
) -> list[int]:
    sizes = [1] * len(shape)
    kept = [d for d in range(len(shape)) if d not in (*numbers_.collapsed, *numbers_.batching)]
    for dimension, operand_dim in zip(numbers_.window, kept, strict=True):
        sizes[operand_dim] = updates_shape[dimension]
    return sizes


def scatter(
    inputs: Sequence[Array], updates: Sequence[Array], targets: Targets, body: Body
) -> list[Array]:
    """Combines every update with its target, in index order where several meet."""
    flat = targets.flat[targets.inside]
    picked = [u.reshape(-1)[targets.inside] for u in updates]
    results = [np.array(a).reshape(-1) for a in inputs]
    if len(inputs) == 1 and (quick := _quick(body)) is not None:
        results[0] = quick(results[0], flat, picked[0])
    else:
        for chosen in rounds(flat):
            where = flat[chosen]
            combined = body(*(r[where] for r in results), *(p[chosen] for p in picked))
            for result, value in zip(results, combined, strict=True):
                result[where] = value
    return [r.reshape(a.shape) for r, a in zip(results, inputs, strict=True)]


def _quick(body: Body) -> Callable[[Array, Array, Array], Array] | None:
    """A NumPy function for the usual bodies: one commutative op, or `return update`."""
    ufunc = body.ufunc
    if ufunc is not None:

        def combine(target: Array, where: Array, update: Array) -> Array:
            wide = numbers.wide(target.dtype)
            total = target.astype(wide)
            ufunc.at(total, where, update.astype(wide))
            return numbers.narrow(total, target.dtype)

        return combine
    if body.returns == 1:

        def assign(target: Array, where: Array, update: Array) -> Array:
            for chosen in rounds(where):  # later updates overwrite earlier ones
                target[where[chosen]] = update[chosen]
            return target

        return assign
    return None


def rounds(targets: Array) -> list[Array]:
    """Splits positions into rounds in which no target occurs twice, keeping the order of equals."""
    if not targets.size:
        return []
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    occurrence = np.arange(len(ordered)) - begin
    if not occurrence.any():
        return [np.arange(len(targets))]
    by_round = np.argsort(occurrence, kind="stable")
    counts = np.bincount(occurrence)
    return [np.sort(order[part]) for part in np.split(by_round, np.cumsum(counts)[:-1])]


# ----------------------------------------------------------------------------- ops


def _gather_numbers(op: Operation) -> Numbers:
    d: Any = need(op, "dimension_numbers")
    return Numbers(
        tuple(d.offset_dims),
        tuple(d.collapsed_slice_dims),
        tuple(d.operand_batching_dims),
        tuple(d.start_indices_batching_dims),
        tuple(d.start_index_map),
        d.index_vector_dim,
    )


@implements("stablehlo.gather")
def _gather(op: Operation, context: Context) -> Kernel:
    numbers_, sizes = _gather_numbers(op), integers(op, "slice_sizes")
    rank = len(result_shape(op))
    return binary(lambda a, indices: gather(a, indices, numbers_, sizes, rank))


@implements("stablehlo.dynamic_gather")
def _dynamic_gather(op: Operation, context: Context) -> Kernel:
    numbers_ = _gather_numbers(op)
    rank = len(result_shape(op))
    return ternary(lambda a, indices, sizes: gather(a, indices, numbers_, sizes.tolist(), rank))


@implements("stablehlo.scatter")
def _scatter(op: Operation, context: Context) -> Kernel:
    d: Any = need(op, "scatter_dimension_numbers")
    numbers_ = Numbers(
        tuple(d.update_window_dims),
        tuple(d.inserted_window_dims),
        tuple(d.input_batching_dims),
        tuple(d.scatter_indices_batching_dims),
        tuple(d.scatter_dims_to_operand_dims),
        d.index_vector_dim,
    )
    body = context.body(op.regions[0])
    count = len(op.results)

    def kernel(*operands: Array) -> list[Array]:
        inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
        targets = scatter_targets(inputs[0].shape, indices, updates[0].shape, numbers_)
        return scatter(inputs, updates, targets, body)

    return kernel
