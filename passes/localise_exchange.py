"""How does an op that looks across the border of its tile work on one device? slice, pad,
concatenate, reverse, reduce_window, convolution.

What a tile of the result reads is put together from the device's own part and from what it has
received (`engine/exchange.py`); then the op runs on that, with paddings that are alike on all
devices. What lies beyond the whole operand is replaced by what the op pads with.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..engine.exchange import Piece, Slide, pieces
from ..partir_dialect.rules.properties import integers, numbers, pairs, required
from .emit import Emitter, tensor_of
from .localise_context import Context, Rewrite
from .localise_index import one_element


def _array(values: list[int]) -> Attribute:
    made: Attribute = DenseArrayBase.from_list(i64, values)
    return made


def _windows(op: Operation, context: Context, emit: Emitter) -> Iterator[tuple[Slide, SSAValue]]:
    """What a tile of the result reads of each operand, zero beyond its ends."""
    received = iter(context.received)
    index = context.index(emit)
    for slide in context.shape.slides[context.factor]:
        parts = [
            (piece, next(received) if piece.pairs else own_part(op, slide, piece, emit))
            for piece in pieces(slide, context.tiles)
        ]
        yield slide, assembled(slide, context.tiles, index, parts, op, emit)


def own_part(op: Operation, slide: Slide, piece: Piece, emit: Emitter) -> SSAValue:
    return emit.part(op.operands[slide.operand], slide.dim, piece.start, piece.size)


def assembled(
    slide: Slide,
    tiles: int,
    index: SSAValue,
    parts: list[tuple[Piece, SSAValue]],
    op: Operation,
    emit: Emitter,
) -> SSAValue:
    """The pieces, each in its place for tile number `index`; zero where there is none."""
    d, width = slide.dim, slide.reads(tiles)[2]
    if len(parts) == 1 and parts[0][0].size == width and set(parts[0][0].places) == {0}:
        return parts[0][1]
    places = [place for piece, _ in parts for place in piece.places if place is not None]
    before = max([0, *(-place for place in places)])
    behind = max([0, *(piece.size for piece, _ in parts)])
    type_ = tensor_of(op.operands[slide.operand])
    shape = list(type_.get_shape())
    shape[d] = before + width + behind  # what a device does not need goes behind
    made = emit.splat(0, TensorType(type_.element_type, shape))
    zero = emit.integer(0)
    for piece, value in parts:
        starts = [zero] * len(shape)
        starts[d] = _looked_up(
            [before + (width if place is None else place) for place in piece.places], index, emit
        )
        made = emit.update(made, value, starts)
    return emit.part(made, d, before, width)


def _looked_up(table: list[int], index: SSAValue, emit: Emitter) -> SSAValue:
    """The entry of a table for the device's tile."""
    if len(set(table)) == 1:
        return emit.integer(table[0])
    held = emit.table(np.asarray(table), i32)
    return emit.reshape(emit.dynamic_slice(held, [index], [1]), [])


def _filled(
    slide: Slide, context: Context, window: SSAValue, fill: SSAValue, emit: Emitter
) -> SSAValue:
    """The window with `fill` (a scalar) beyond the ends of the operand."""
    if not slide.leaves(context.tiles):
        return window
    shape = tensor_of(window).get_shape()
    inside = _inside(slide, context, shape, 0, slide.source, emit)
    return emit.select(inside, window, emit.broadcast(fill, shape))


def _inside(
    slide: Slide, context: Context, shape: tuple[int, ...], low: int, high: int, emit: Emitter
) -> SSAValue:
    """Where in the window a position of the operand from `low` up to `high` lies."""
    step, first, _ = slide.reads(context.tiles)
    start = emit.add(emit.multiply(context.index(emit), emit.integer(step)), emit.integer(first))
    bounds = [
        emit.broadcast(emit.subtract(emit.integer(bound), start), shape) for bound in (low, high)
    ]
    return emit.within(emit.iota(TensorType(i32, shape), slide.dim), bounds[0], bounds[1])


# --- the ops ------------------------------------------------------------------------------------


def _slice(op: Operation, context: Context, emit: Emitter) -> None:
    if context.shape.partial[context.factor]:
        one_element(op, context, emit)
        return
    starts, limits = (list(required(op, name)) for name in ("start_indices", "limit_indices"))
    ((slide, window),) = _windows(op, context, emit)
    op.operands[0] = window
    starts[slide.dim], limits[slide.dim] = 0, tensor_of(window).get_shape()[slide.dim]
    op.properties["start_indices"] = _array(starts)
    op.properties["limit_indices"] = _array(limits)


def _reverse(op: Operation, context: Context, emit: Emitter) -> None:
    ((_, window),) = _windows(op, context, emit)
    op.operands[0] = window


def _pad(op: Operation, context: Context, emit: Emitter) -> None:
    lows, highs = (list(required(op, f"edge_padding_{side}")) for side in ("low", "high"))
    ((slide, window),) = _windows(op, context, emit)
    op.operands[0] = _filled(slide, context, window, op.operands[1], emit)
    lows[slide.dim], highs[slide.dim] = slide.gap(context.tiles), slide.rest(context.tiles)
    op.properties["edge_padding_low"] = _array(lows)
    op.properties["edge_padding_high"] = _array(highs)


def _concatenate(op: Operation, context: Context, emit: Emitter) -> None:
    """Of each operand what would fall into the tile; position by position the one that does."""
    windows = list(_windows(op, context, emit))
    behind = context.after
    _, made = windows[-1]
    shape = tensor_of(made).get_shape()
    for slide, window in reversed(windows[:-1]):
        mine = _inside(slide, context, shape, -slide.low, slide.source, behind)
        made = behind.select(mine, window, made)
    context.results[0] = made


def _reduce_window(op: Operation, context: Context, emit: Emitter) -> None:
    count = len(op.operands) // 2
    windows = list(_windows(op, context, emit))
    for slide, window in windows:
        init = op.operands[count + slide.operand]
        op.operands[slide.operand] = _filled(slide, context, window, init, emit)
    slide = windows[0][0]
    _set_padding(op, slide.dim, slide, context.tiles)


def _convolution(op: Operation, context: Context, emit: Emitter) -> None:
    ((slide, window),) = _windows(op, context, emit)
    op.operands[0] = window
    spatial = tuple(numbers(op, "dimension_numbers").input_spatial_dimensions)
    _set_padding(op, spatial.index(slide.dim), slide, context.tiles)


def _set_padding(op: Operation, number: int, slide: Slide, tiles: int) -> None:
    rank = len(integers(op, "window_dimensions") or ()) or len(
        numbers(op, "dimension_numbers").input_spatial_dimensions
    )
    padding = list(pairs(op, "padding", rank))
    padding[number] = (slide.gap(tiles), slide.rest(tiles))
    op.properties["padding"] = DenseIntOrFPElementsAttr.from_list(
        TensorType(i64, (rank, 2)), [side for both in padding for side in both]
    )


EXCHANGE_REWRITES: dict[str, Rewrite] = {
    "slice": _slice,
    "reverse": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "reduce_window": _reduce_window,
    "convolution": _convolution,
}
