"""What the batch-norm ops compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from . import numbers
from .attributes import integer, need
from .compiler import Context
from .registry import Array, Kernel, implements


def _settings(op: Operation) -> tuple[float, int]:
    epsilon = need(op, "epsilon")
    assert isinstance(epsilon, FloatAttr)
    return float(epsilon.value.data), integer(op, "feature_index")


def _spread(vector: Array, rank: int, feature: int) -> Array:
    """A vector over the features, shaped to broadcast against the operand."""
    side = [1] * rank
    side[feature] = vector.shape[0]
    return vector.reshape(side)


def _others(a: Array, feature: int) -> tuple[int, ...]:
    return tuple(d for d in range(a.ndim) if d != feature)


def inference(
    a: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    epsilon: float,
    feature: int,
) -> list[Array]:
    """`scale · (a − mean) / √(variance + ε) + offset`, per feature."""
    scale, offset, mean, variance = (
        _spread(v, a.ndim, feature) for v in (scale, offset, mean, variance)
    )
    return [scale * (a - mean) / np.sqrt(variance + a.dtype.type(epsilon)) + offset]


def training(a: Array, scale: Array, offset: Array, epsilon: float, feature: int) -> list[Array]:
    """The normalised operand, its mean and its variance over all but the feature dimension."""
    dims = _others(a, feature)
    mean = a.mean(axis=dims, dtype=a.dtype)
    variance = np.square(a - _spread(mean, a.ndim, feature)).mean(axis=dims, dtype=a.dtype)
    return [*inference(a, scale, offset, mean, variance, epsilon, feature), mean, variance]


def gradient(
    a: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    upstream: Array,
    epsilon: float,
    feature: int,
) -> list[Array]:
    """The gradients of `training` with respect to operand, scale and offset."""
    dims = _others(a, feature)
    count = a.dtype.type(a.size / max(a.shape[feature], 1))
    inverse = _spread(1 / np.sqrt(variance + a.dtype.type(epsilon)), a.ndim, feature)
    centred = a - _spread(mean, a.ndim, feature)
    grad_offset = upstream.sum(axis=dims, dtype=a.dtype)
    grad_scale = (upstream * centred * inverse).sum(axis=dims, dtype=a.dtype)
    inner = (
        count * upstream
        - _spread(grad_offset, a.ndim, feature)
        - centred * inverse * _spread(grad_scale, a.ndim, feature)
    )
    grad = _spread(scale, a.ndim, feature) * inverse / count * inner
    return [grad, grad_scale, grad_offset]


def _in_wide_types(op: Operation, function: Callable[..., list[Array]]) -> Kernel:
    """Computes narrow floats in f32 and rounds the results once."""
    epsilon, feature = _settings(op)

    def kernel(*arrays: Array) -> list[Array]:
        dtype = arrays[0].dtype
        wide = [a.astype(numbers.wide(a.dtype), copy=False) for a in arrays]
        return [numbers.narrow(a, dtype) for a in function(*wide, epsilon, feature)]

    return kernel


@implements("stablehlo.batch_norm_inference")
def _inference(op: Operation, context: Context) -> Kernel:
    return _in_wide_types(op, inference)


@implements("stablehlo.batch_norm_training")
def _training(op: Operation, context: Context) -> Kernel:
    return _in_wide_types(op, training)


@implements("stablehlo.batch_norm_grad")
def _gradient(op: Operation, context: Context) -> Kernel:
    return _in_wide_types(op, gradient)
