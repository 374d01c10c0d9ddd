"""What `reduce` and `map` compute, for any body.

A body that is one commutative op is a NumPy reduction. Any other body is applied to whole slabs: in
order along a short dimension, in pairs of neighbours along a long one (bodies are associative by
the specification). Narrow floats reduce in f32 when the body is one op.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import integers
from .bodies import Body
from .compiler import Context
from .registry import Array, Kernel, implements

_IN_ORDER = 64  # slabs that are folded one after the other


def reduce_with(ufunc: np.ufunc, a: Array, initial: Array, dims: Sequence[int]) -> Array:
    """`initial ⊕ a ⊕ …` along `dims` for a commutative NumPy function."""
    wide = numbers.wide(a.dtype)
    total = ufunc.reduce(a.astype(wide, copy=False), axis=tuple(dims), **_start(ufunc, wide))
    combined = ufunc(np.asarray(total), initial.astype(wide, copy=False))
    return numbers.narrow(np.asarray(combined), a.dtype)


def _start(ufunc: np.ufunc, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Keeps NumPy in the operand's type (it sums small integers in 64 bits), and gives extremes of
    nothing a start."""
    if ufunc in (np.maximum, np.minimum):
        return {"initial": _extreme(ufunc, dtype)}
    return {"dtype": dtype}


def _extreme(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Any:
    lowest = ufunc is np.maximum
    if dtype.kind == "b":
        return not lowest
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if lowest else info.max
    return -np.inf if lowest else np.inf


def fold(body: Body, slabs: Sequence[Array], initial: Sequence[Array]) -> list[Array]:
    """Folds each array along its first dimension, starting at `initial`."""
    count = slabs[0].shape[0]
    shape = slabs[0].shape[1:]
    if count > _IN_ORDER:
        slabs = _pairs(body, list(slabs))
        count = 1
    state = [np.broadcast_to(value, shape) for value in initial]
    for i in range(count):
        state = body(*state, *(slab[i] for slab in slabs))
    return state


def _pairs(body: Body, slabs: list[Array]) -> list[Array]:
    """Combines neighbours until one slab is left."""
    while slabs[0].shape[0] > 1:
        count = slabs[0].shape[0]
        even = count - count % 2
        joined = body(*(s[0:even:2] for s in slabs), *(s[1:even:2] for s in slabs))
        if count % 2:
            joined = [np.concatenate([j, s[-1:]]) for j, s in zip(joined, slabs, strict=True)]
        slabs = joined
    return slabs


def reduce(
    inputs: Sequence[Array], initial: Sequence[Array], dims: Sequence[int], body: Body
) -> list[Array]:
    """Reduces several arrays together along `dims`."""
    if body.ufunc is not None and len(inputs) == 1:
        return [reduce_with(body.ufunc, inputs[0], initial[0], dims)]
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    shape = [inputs[0].shape[d] for d in kept]
    count = prod(inputs[0].shape[d] for d in dims)
    slabs = [np.transpose(a, (*dims, *kept)).reshape(count, *shape) for a in inputs]
    return fold(body, slabs, initial)


@implements("stablehlo.reduce")
def _reduce(op: Operation, context: Context) -> Kernel:
    dims, body, count = integers(op, "dimensions"), context.body(op.regions[0]), len(op.results)
    dims = tuple(sorted(dims))

    def kernel(*operands: Array) -> list[Array]:
        return reduce(operands[:count], operands[count:], dims, body)

    return kernel


@implements("stablehlo.map")
def _map(op: Operation, context: Context) -> Kernel:
    return context.body(op.regions[0])
