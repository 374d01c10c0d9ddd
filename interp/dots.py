"""What `dot_general` and its kin compute: contractions that accumulate as XLA does.

Narrow floats accumulate in f32 and round once; integers wrap in the result type.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import need, text
from .compiler import Context
from .registry import Array, Kernel, binary, implements, ternary


def accumulator(result: np.dtype[Any], *operands: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which products are summed: f32 for narrow floats, else the widest type."""
    target = numbers.wide(result)
    if not numbers.is_float(target):
        return target
    wide = [numbers.wide(dtype) for dtype in operands]
    return np.result_type(target, *(dtype for dtype in wide if dtype.kind in "fc"))


def dot_general(
    a: Array,
    b: Array,
    batch: tuple[Sequence[int], Sequence[int]],
    contract: tuple[Sequence[int], Sequence[int]],
    dtype: np.dtype[Any],
) -> Array:
    """Σ over the contracting dimensions: batch dims, then the free dims of `a`, then of `b`."""
    target = accumulator(dtype, a.dtype, b.dtype)
    free_a = [d for d in range(a.ndim) if d not in (*batch[0], *contract[0])]
    free_b = [d for d in range(b.ndim) if d not in (*batch[1], *contract[1])]
    shape = (
        *(a.shape[d] for d in batch[0]),
        *(a.shape[d] for d in free_a),
        *(b.shape[d] for d in free_b),
    )
    lead = prod(a.shape[d] for d in batch[0])
    inner = prod(a.shape[d] for d in contract[0])
    left = np.transpose(a, (*batch[0], *free_a, *contract[0]))
    right = np.transpose(b, (*batch[1], *contract[1], *free_b))
    left = left.reshape(lead, prod(a.shape[d] for d in free_a), inner)
    right = right.reshape(lead, inner, prod(b.shape[d] for d in free_b))
    product = multiply(left, right, target)
    return numbers.narrow(product.reshape(shape), dtype)


def multiply(a: Array, b: Array, target: np.dtype[Any]) -> Array:
    """Batched matrix product, computed in `target`."""
    if target.kind in "fc" or target == numbers.BOOL:
        return np.matmul(_to(a, target), _to(b, target))
    return _integer_product(_to(a, target), _to(b, target))


def _to(a: Array, target: np.dtype[Any]) -> Array:
    return numbers.convert(a, target) if a.dtype != target else a


def _integer_product(a: Array, b: Array) -> Array:
    """Integer matrix product; through doubles (and BLAS) when these are exact."""
    if a.dtype.itemsize <= 4 and a.size and b.size:
        largest = float(np.abs(a.astype(np.float64)).max()) * float(
            np.abs(b.astype(np.float64)).max()
        )
        if largest * a.shape[-1] < 2**53:
            exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
            return exact.astype(np.int64).astype(a.dtype)
    return np.matmul(a, b)


@implements("stablehlo.dot_general")
def _dot_general(op: Operation, context: Context) -> Kernel:
    d = need(op, "dot_dimension_numbers")
    batch = (d.lhs_batching_dimensions, d.rhs_batching_dimensions)
    contract = (d.lhs_contracting_dimensions, d.rhs_contracting_dimensions)
    dtype = context.dtype(op.results[0].type)
    return binary(lambda a, b: dot_general(a, b, batch, contract, dtype))


@implements("stablehlo.dot")
def _dot(op: Operation, context: Context) -> Kernel:
    dtype = context.dtype(op.results[0].type)
    return binary(lambda a, b: dot_general(a, b, ((), ()), ((a.ndim - 1,), (0,)), dtype))


def ragged_dot(a: Array, b: Array, sizes: Array, d: Any, dtype: np.dtype[Any]) -> Array:
    """A `dot_general` for each group of the ragged dimension of `a`; groups follow one another.

    The ragged dimension is free (each group has its own `b`; rows beyond the groups give zeros),
    contracted (each group gives its own result) or a batch dimension (groups do not matter).
    """
    batch = (d.lhs_batching_dimensions, d.rhs_batching_dimensions)
    contract = (d.lhs_contracting_dimensions, d.rhs_contracting_dimensions)
    (ragged,) = d.lhs_ragged_dimensions
    if ragged in batch[0]:
        return dot_general(a, b, batch, contract, dtype)
    ends = np.cumsum(sizes, axis=-1)
    position: Array = np.arange(a.shape[ragged], dtype=np.int64)
    groups: list[Array] = []
    for k in range(sizes.shape[-1]):
        inside = (position >= ends[..., k : k + 1] - sizes[..., k : k + 1]) & (
            position < ends[..., k : k + 1]
        )
        part = np.where(_along(inside, a.ndim, batch[0], ragged), a, np.zeros((), a.dtype))
        right = np.take(b, k, axis=d.rhs_group_dimensions[0]) if d.rhs_group_dimensions else b
        groups.append(dot_general(part, right, _less(batch, d), _less(contract, d), dtype))
    if ragged in contract[0]:
        return np.stack(groups)
    total = groups[0]
    for group in groups[1:]:
        total = total + group
    return total


def _along(inside: Array, rank: int, batch: Sequence[int], ragged: int) -> Array:
    """A mask over batch dims and the ragged dimension (or this alone), to broadcast to `a`."""
    shape = [1] * rank
    shape[ragged] = inside.shape[-1]
    if inside.ndim == 1:
        return inside.reshape(shape)
    for dimension, size in zip(batch, inside.shape, strict=False):
        shape[dimension] = size
    order = np.argsort([*batch, ragged])
    return np.transpose(inside, order).reshape(shape)


def _less(pair: tuple[Sequence[int], Sequence[int]], d: Any) -> tuple[list[int], list[int]]:
    """Dimension numbers after the group dimension of `b` is gone."""
    gone = d.rhs_group_dimensions[0] if d.rhs_group_dimensions else len(pair[1]) + 99
    return list(pair[0]), [dim - (dim > gone) for dim in pair[1]]


@implements("chlo.ragged_dot")
def _ragged_dot(op: Operation, context: Context) -> Kernel:
    d = need(op, "ragged_dot_dimension_numbers")
    dtype = context.dtype(op.results[0].type)
    return ternary(lambda a, b, sizes: ragged_dot(a, b, sizes, d, dtype))


@implements("stablehlo.einsum", "stablehlo.unary_einsum")
def _einsum(op: Operation, context: Context) -> Kernel:
    equation = text(op, "einsum_config")
    dtype = context.dtype(op.results[0].type)

    def kernel(*arrays: Array) -> Array:
        target = accumulator(dtype, *(a.dtype for a in arrays))
        result = np.einsum(equation, *(_to(a, target) for a in arrays), optimize=len(arrays) > 1)
        return numbers.narrow(np.asarray(result), dtype)

    return kernel
