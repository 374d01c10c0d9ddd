"""Which dims do runtime indices touch? gather, scatter, dynamic slices.

A dimension that is taken whole is parallel, whatever the indices (starts clamp to zero). An indexed
one is special: a gather masks what is not in the tile and adds, a scatter masks the updates.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, cast

from xdsl.ir import Operation

from ..stablehlo_attrs import GatherAttr, ScatterAttr
from .base import Kind, Linearity, Rule, RuleFunction
from .builder import Place, RuleBuilder, at, out
from .linearity import EVERY, joint, single
from .properties import integer, numbers, required
from .reducers import common_reducer, counted_once, sum_reducer


def dynamic_slice(op: Operation) -> Rule:
    """Touched dimensions: each device gives what it has of the slice, masked, to be added."""
    builder = RuleBuilder(op)
    sizes = required(op, "slice_sizes")
    for dim, size in enumerate(builder.operands[0]):
        if sizes[dim] == size:
            builder.join(at(0, dim), out(dim))
        else:
            builder.join(
                at(0, dim),
                kind=Kind.SPECIAL,
                reducer=sum_reducer(op.operands[0]),
                rewrite="dynamic_slice",
            )
    return builder.build((single((0,), EVERY),))


def dynamic_update_slice(op: Operation) -> Rule:
    """Touched dimensions: each device writes what falls into its tile; the update is whole."""
    builder = RuleBuilder(op)
    for dim, size in enumerate(builder.operands[0]):
        if builder.operands[1][dim] == size:
            builder.join(at(0, dim), at(1, dim), out(dim))
        else:
            builder.join(at(0, dim), out(dim), kind=Kind.SPECIAL, rewrite="dynamic_update_slice")
    return builder.build((joint((0, 1), EVERY),))


class _Parts(NamedTuple):
    """How a gather's result or a scatter's update is made of dimensions of operand and indices."""

    window: tuple[tuple[int, int], ...]  # (operand dim, window dim)
    batch: tuple[tuple[int, int, int | None], ...]  # (indices dim, batch dim, operand dim or None)


def _kept(rank: int, *dropped: tuple[int, ...]) -> list[int]:
    """The dimensions below `rank` that are in none of the lists, in order."""
    gone = {d for dims in dropped for d in dims}
    return [d for d in range(rank) if d not in gone]


def _batch(
    indices_dims: list[int], batch_dims: list[int], batching: dict[int, int]
) -> tuple[tuple[int, int, int | None], ...]:
    pairs = zip(indices_dims, batch_dims, strict=True)
    return tuple((index, batch, batching.get(index)) for index, batch in pairs)


def _gather_parts(builder: RuleBuilder, dims: GatherAttr) -> _Parts:
    operand, indices = builder.operands
    offset = tuple(dims.offset_dims)
    batching = tuple(dims.operand_batching_dims)
    window = _kept(len(operand), tuple(dims.collapsed_slice_dims), batching)
    return _Parts(
        tuple(zip(window, offset, strict=True)),
        _batch(
            _kept(len(indices), (dims.index_vector_dim,)),
            _kept(len(builder.results[0]), offset),
            dict(zip(dims.start_indices_batching_dims, batching, strict=True)),
        ),
    )


def _scatter_parts(builder: RuleBuilder, dims: ScatterAttr, count: int) -> _Parts:
    operand, indices, updates = (builder.operands[k] for k in (0, count, count + 1))
    window_dims = tuple(dims.update_window_dims)
    batching = tuple(dims.input_batching_dims)
    window = _kept(len(operand), tuple(dims.inserted_window_dims), batching)
    return _Parts(
        tuple(zip(window, window_dims, strict=True)),
        _batch(
            _kept(len(indices), (dims.index_vector_dim,)),
            _kept(len(updates), window_dims),
            dict(zip(dims.scatter_indices_batching_dims, batching, strict=True)),
        ),
    )


def gather(op: Operation) -> Rule:
    """Batch dimensions and windows that are whole are parallel; a dimension of which one element is
    taken by index is masked and added; longer partial windows are blocked."""
    builder = RuleBuilder(op)
    dims = cast("GatherAttr", numbers(op, "dimension_numbers"))
    sizes = required(op, "slice_sizes")
    indexed = set(dims.start_index_map)
    shape = builder.operands[0]
    parts = _gather_parts(builder, dims)
    for index, result, operand in parts.batch:
        own = [] if operand is None else [at(0, operand)]
        builder.join(*own, at(1, index), out(result))
    for operand, result in parts.window:
        if sizes[operand] == shape[operand]:
            builder.join(at(0, operand), out(result))
    windowed = [operand for operand, _ in parts.window]
    for operand in (*dims.collapsed_slice_dims, *windowed):
        if operand in indexed and sizes[operand] == 1:
            builder.join(
                at(0, operand),
                kind=Kind.SPECIAL,
                reducer=sum_reducer(op.operands[0]),
                rewrite="gather_index",
            )
    return builder.build((single((0,), EVERY),))


def scatter_context(op: Operation) -> Hashable:
    """What a scatter reads beside types and properties: the body's ⊕ and the operands."""
    count = (len(op.operands) - 1) // 2
    reducer = common_reducer(op.regions[0], count)
    return reducer, reducer is not None and counted_once(tuple(op.operands[:count]), reducer)


def scatter(op: Operation) -> Rule:
    """Operands, indices, updates. Windows that are whole and batching dimensions are parallel; the
    other batch dimensions of the updates are a reduction by the body's ⊕, for which the operand
    counts once; indexed dimensions mask the updates."""
    builder = RuleBuilder(op)
    count = (len(builder.operands) - 1) // 2
    dims = cast("ScatterAttr", numbers(op, "scatter_dimension_numbers"))
    parts = _scatter_parts(builder, dims, count)
    _scatter_windows(builder, parts, dims, count)
    reducer = common_reducer(op.regions[0], count)
    once = reducer is not None and counted_once(tuple(op.operands[:count]), reducer)
    for index, update, operand in parts.batch:
        updates = [at(count + 1 + k, update) for k in range(count)]
        if operand is not None:
            whole = _inputs(operand, count)
            builder.join(at(count, index), *updates, *whole)
        elif reducer is not None:
            builder.join(
                at(count, index),
                *updates,
                kind=Kind.REDUCTION,
                reducer=reducer,
                rewrite=None if once else "init_once",
            )
    return builder.build(_scatter_linearity(count, reducer, once))


def _scatter_linearity(count: int, reducer: str | None, once: bool) -> tuple[Linearity, ...]:
    """Operands and updates together; the updates alone where the operand may count many times."""
    if reducer is None:
        return ()
    own = frozenset({reducer})
    updates = range(count + 1, 2 * count + 1)
    together = joint((*range(count), *updates), own)
    return (together, joint(updates, own)) if once else (together,)


def _inputs(dim: int, count: int) -> list[Place]:
    return [*(at(k, dim) for k in range(count)), *(out(dim, k) for k in range(count))]


def _scatter_windows(builder: RuleBuilder, parts: _Parts, dims: ScatterAttr, count: int) -> None:
    indexed = set(dims.scatter_dims_to_operand_dims)
    shape, update_shape = builder.operands[0], builder.operands[count + 1]
    for operand, update in parts.window:
        updates = [at(count + 1 + k, update) for k in range(count)]
        if operand not in indexed and update_shape[update] == shape[operand]:
            builder.join(*_inputs(operand, count), *updates)
        elif operand in indexed and update_shape[update] == 1:
            builder.join(*_inputs(operand, count), kind=Kind.SPECIAL, rewrite="scatter_index")
    for operand in dims.inserted_window_dims:
        if operand in indexed:
            builder.join(*_inputs(operand, count), kind=Kind.SPECIAL, rewrite="scatter_index")


def torch_index_select(op: Operation) -> Rule:
    """`select(operand, index)` along `dim`, below `batch_dims` shared leading dimensions."""
    builder = RuleBuilder(op)
    dim, batch = integer(op, "dim"), integer(op, "batch_dims")
    index_rank = len(builder.operands[1])
    for d in range(batch):
        builder.join(at(0, d), at(1, d), out(d))
    for d in range(batch, dim):
        builder.join(at(0, d), out(d))
    for d in range(batch, index_rank):
        builder.join(at(1, d), out(dim + d - batch))
    for d in range(dim + 1, len(builder.operands[0])):
        builder.join(at(0, d), out(d + index_rank - batch - 1))
    return builder.build()


RULES: dict[str, RuleFunction] = {
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.torch_index_select": torch_index_select,
}
