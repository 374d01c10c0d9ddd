"""What `convolution` computes: windows of the input times the kernel, every attribute honoured.

Pure functions use one layout: input [batch, feature, space…], kernel [out, in, space…], result
[batch, out, space…].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import find, integer, integers, need, table
from .compiler import Context
from .dots import accumulator, multiply
from .registry import Array, Kernel, implements
from .shapes import pad

_CHUNK = 1 << 24  # elements of unfolded windows held at once


@dataclass(frozen=True)
class Window:
    """How a window moves over the spatial dimensions."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    reversal: tuple[int, ...]


def convolve(
    x: Array, kernel: Array, window: Window, feature_groups: int, batch_groups: int
) -> Array:
    """The convolution in the layout of this module; computes in the operands' dtype."""
    rank = x.ndim - 2
    zero = np.zeros((), x.dtype)
    none = (0, 0)
    low = none + tuple(lo for lo, _ in window.padding)
    high = none + tuple(hi for _, hi in window.padding)
    x = pad(x, zero, low, high, none + tuple(d - 1 for d in window.lhs_dilation))
    flips = tuple(2 + i for i in range(rank) if window.reversal[i])
    kernel = np.flip(kernel, flips)
    groups = feature_groups * batch_groups
    outputs, inputs = kernel.shape[:2]
    lead = x.shape[0] // batch_groups
    x = x.reshape(batch_groups, lead, feature_groups, inputs, *x.shape[2:])
    x = np.moveaxis(x, 2, 1).reshape(groups, lead, inputs, *x.shape[4:])
    kernel = kernel.reshape(groups, outputs // groups, inputs, *kernel.shape[2:])
    result = _grouped(x, kernel, window)  # [groups, outputs / groups, lead, space…]
    result = result.reshape(outputs, lead, *result.shape[3:])
    return np.moveaxis(result, 0, 1)


def _extent(size: int, taps: int, dilation: int, stride: int) -> int:
    reach = (taps - 1) * dilation + 1 if taps else 0
    return max(0, (size - reach) // stride + 1) if size >= reach else 0


def _grouped(x: Array, kernel: Array, window: Window) -> Array:
    """x [g, n, c, space…], kernel [g, o, c, taps…] → [g, o, n, space…]."""
    taps = kernel.shape[3:]
    sizes = tuple(map(_extent, x.shape[3:], taps, window.rhs_dilation, window.strides))
    groups, outputs, channels = kernel.shape[:3]
    lead = x.shape[1]
    result = np.zeros((groups, outputs, lead * prod(sizes)), x.dtype)
    if not result.size or not prod(taps):
        return result.reshape(groups, outputs, lead, *sizes)
    row = max(1, groups * channels * lead * prod(sizes))
    for chunk in _chunks(taps, max(1, _CHUNK // row)):
        pieces = [x[(..., *_tap(tap, sizes, window))] for tap in chunk]
        columns = np.stack(pieces, axis=3)  # [g, n, c, t, space…]
        columns = np.moveaxis(columns, 1, 3).reshape(groups, channels * len(chunk), -1)
        weights = np.stack([kernel[(..., *tap)] for tap in chunk], axis=3)
        weights = weights.reshape(groups, outputs, channels * len(chunk))
        result = result + multiply(weights, columns, result.dtype)
    return result.reshape(groups, outputs, lead, *sizes)


def _chunks(taps: Sequence[int], count: int) -> Iterator[list[tuple[int, ...]]]:
    every = list(np.ndindex(*taps))
    for start in range(0, len(every), count):
        yield every[start : start + count]


def _tap(tap: Sequence[int], sizes: Sequence[int], window: Window) -> tuple[slice, ...]:
    """Where the input elements lie that meet one element of the kernel."""
    return tuple(
        slice(t * dilation, t * dilation + (size - 1) * stride + 1, stride)
        for t, size, dilation, stride in zip(
            tap, sizes, window.rhs_dilation, window.strides, strict=True
        )
    )


def _window(op: Operation, rank: int, padding: Sequence[Sequence[int]] | None) -> Window:
    ones = (1,) * rank
    pairs = padding if padding is not None else [(0, 0)] * rank
    return Window(
        integers(op, "window_strides", ones),
        tuple((int(lo), int(hi)) for lo, hi in pairs),
        integers(op, "lhs_dilation", ones),
        integers(op, "rhs_dilation", ones),
        integers(op, "window_reversal", (0,) * rank),
    )


@implements("stablehlo.convolution", "stablehlo.dynamic_conv")
def _convolution(op: Operation, context: Context) -> Kernel:
    d = need(op, "dimension_numbers")
    space = d.input_spatial_dimensions
    to_input = (d.input_batch_dimension, d.input_feature_dimension, *space)
    to_kernel = (
        d.kernel_output_feature_dimension,
        d.kernel_input_feature_dimension,
        *d.kernel_spatial_dimensions,
    )
    out = (d.output_batch_dimension, d.output_feature_dimension, *d.output_spatial_dimensions)
    fixed = table(op, "padding") if find(op, "padding") is not None else None
    features = integer(op, "feature_group_count", 1)
    batches = integer(op, "batch_group_count", 1)
    dtype = context.dtype(op.results[0].type)

    def kernel(a: Array, b: Array, *padding: Array) -> Array:
        pairs: Any = padding[0].reshape(-1, 2) if padding else fixed
        target = accumulator(dtype, a.dtype, b.dtype)
        x = numbers.convert(np.transpose(a, to_input), target)
        weights = numbers.convert(np.transpose(b, to_kernel), target)
        window = _window(op, len(space), pairs)
        result = convolve(x, weights, window, features, batches)
        return numbers.narrow(np.transpose(result, np.argsort(out)), dtype)

    return kernel
