"""What `reduce_window` and `select_and_scatter` compute: every window at once, tap by tap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.ir import Operation

from . import numbers
from .attributes import find, integers, operand_shape, table
from .bodies import Body
from .compiler import Context
from .folding import reduce_with
from .indexing import Targets, scatter
from .registry import Array, Kernel, implements, ternary
from .shapes import pad


@dataclass(frozen=True)
class Window:
    """How a window moves over all dimensions of an array."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def counts(self, padded: Sequence[int]) -> tuple[int, ...]:
        """How many windows fit into an array of this padded shape."""
        reach = [
            (s - 1) * d + 1 if s else 0 for s, d in zip(self.sizes, self.dilations, strict=True)
        ]
        return tuple(
            max(0, (n - r) // stride + 1) if n >= r else 0
            for n, r, stride in zip(padded, reach, self.strides, strict=True)
        )

    def pad(self, a: Array, value: Array) -> Array:
        """The array with base dilation and padding."""
        return pad(a, value, self.low, self.high, [d - 1 for d in self.base_dilations])

    def taps(self, padded: Array) -> Iterator[Array]:
        """For each element of the window, in row-major order, that element of every window."""
        counts = self.counts(padded.shape)
        for tap in np.ndindex(*self.sizes):
            yield padded[
                tuple(
                    slice(t * d, t * d + (n - 1) * s + 1, s) if n else slice(0, 0)
                    for t, d, n, s in zip(tap, self.dilations, counts, self.strides, strict=True)
                )
            ]

    def view(self, padded: Array) -> Array:
        """All windows as a view: the window's dimensions after the array's own."""
        counts = self.counts(padded.shape)
        steps = padded.strides
        outer = [step * s for step, s in zip(steps, self.strides, strict=True)]
        inner = [step * d for step, d in zip(steps, self.dilations, strict=True)]
        return as_strided(padded, (*counts, *self.sizes), (*outer, *inner), writeable=False)


def reduce_window(
    inputs: Sequence[Array], initial: Sequence[Array], window: Window, body: Body
) -> list[Array]:
    """Folds every window, starting at `initial`, which also fills the padding."""
    padded = [window.pad(a, value) for a, value in zip(inputs, initial, strict=True)]
    if body.ufunc is not None and len(inputs) == 1:
        return [_fold_windows(body.ufunc, padded[0], initial[0], window)]
    counts = window.counts(padded[0].shape)
    state = [np.broadcast_to(value, counts) for value in initial]
    for elements in zip(*(window.taps(p) for p in padded), strict=True):
        state = body(*state, *elements)
    return state


def _fold_windows(ufunc: np.ufunc, padded: Array, initial: Array, window: Window) -> Array:
    dimension = _prefix_dimension(padded.shape, window)
    wide = numbers.wide(padded.dtype)
    idempotent = bool(ufunc(initial, initial) == initial)  # so that padding may be met twice
    if dimension is not None and idempotent:
        running = ufunc.accumulate(padded.astype(wide), axis=dimension, dtype=wide)
        first = window.sizes[dimension] - 1
        running = running[(slice(None),) * dimension + (slice(first, None),)]
        return numbers.narrow(ufunc(running, initial.astype(wide)), padded.dtype)
    rank = padded.ndim
    view = window.view(np.ascontiguousarray(padded.astype(wide, copy=False)))
    total = reduce_with(ufunc, view, initial.astype(wide), range(rank, 2 * rank))
    return numbers.narrow(total, padded.dtype)


def _prefix_dimension(padded: Sequence[int], window: Window) -> int | None:
    """The dimension along which every window is a prefix: a cumulative sum and its like."""
    long = [d for d, size in enumerate(window.sizes) if size > 1]
    if len(long) != 1 or any(s != 1 for s in (*window.strides, *window.dilations)):
        return None
    (d,) = long
    size = window.sizes[d]
    others = [i for i in range(len(padded)) if i != d]
    plain = all(not window.low[i] and not window.high[i] for i in others)
    plain = plain and all(b == 1 for b in window.base_dilations)
    return d if plain and window.low[d] == size - 1 and padded[d] == 2 * size - 1 else None


def select_and_scatter(
    a: Array, source: Array, initial: Array, window: Window, select: Body, combine: Body
) -> Array:
    """Scatters `source` to the element that `select` prefers in each window; padding never wins."""
    edges = dict(low=window.low, high=window.high, interior=(0,) * a.ndim)
    positions = np.asarray(range(a.size), np.int64).reshape(a.shape)
    values = pad(a, np.zeros((), a.dtype), **edges)
    where = pad(positions, np.array(-1), **edges)
    best, place = None, None
    for candidate, position in zip(window.taps(values), window.taps(where), strict=True):
        if best is None or place is None:
            best, place = candidate, position
            continue
        (keep,) = select(best, candidate)
        keep = (keep & (place >= 0)) | (position < 0)
        best, place = np.where(keep, best, candidate), np.where(keep, place, position)
    assert place is not None
    flat = place.reshape(-1)
    (result,) = scatter(
        [np.full(a.shape, initial, a.dtype)], [source], Targets(flat, flat >= 0), combine
    )
    return result


# ----------------------------------------------------------------------------- ops


def _window(op: Operation, sizes: Sequence[int], padding: Array | None) -> Window:
    ones = (1,) * len(sizes)
    pairs = np.zeros((len(sizes), 2), np.int64) if padding is None else padding.reshape(-1, 2)
    return Window(
        tuple(sizes),
        integers(op, "window_strides", ones),
        integers(op, "base_dilations", ones),
        integers(op, "window_dilations", ones),
        tuple(int(lo) for lo, _ in pairs),
        tuple(int(hi) for _, hi in pairs),
    )


@implements("stablehlo.reduce_window")
def _reduce_window(op: Operation, context: Context) -> Kernel:
    window = _window(op, integers(op, "window_dimensions"), table(op, "padding"))
    body, count = context.body(op.regions[0]), len(op.results)

    def kernel(*operands: Array) -> list[Array]:
        return reduce_window(operands[:count], operands[count:], window, body)

    return kernel


@implements("stablehlo.select_and_scatter")
def _select_and_scatter(op: Operation, context: Context) -> Kernel:
    rank = len(operand_shape(op, 0))
    sizes = integers(op, "window_dimensions") if find(op, "window_dimensions") else (1,) * rank
    window = _window(op, sizes, table(op, "padding"))
    select, combine = context.body(op.regions[0]), context.body(op.regions[1])
    return ternary(
        lambda a, source, initial: select_and_scatter(a, source, initial, window, select, combine)
    )
