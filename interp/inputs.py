"""Which inputs does a verification run on? Random ones that the program can do something with.

An argument's name and its uses say what it may be: integers stay within what they index, what goes
under a root is not negative, step counts are small, weights keep activations of unit size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.names import argument_names
from . import numbers
from .attributes import element_of, is_static, shape_of
from .faults import InterpreterError
from .registry import Array
from .uses import Uses, uses_of

_STEP = re.compile(r"(^|/|_)(step|steps|count|iteration|position|pos|timestep)\d*$")
_SECOND = re.compile(
    r"(^|/)(nu|v|second_moment|exp_avg_sq|var|variance|running_var|moving_variance)(/|$)"
)
_RANDOM = re.compile(r"(^|/|_)(key|keys|rng|seed|state|prng)\d*$")
_WEIGHTS = re.compile(r"^(params?|weights?|variables|model)/")
_FREE_INTEGERS = 8  # integers that index nothing are below this


def draw_inputs(module: ModuleOp, seed: int = 0, *, function: str = "main") -> list[Array]:
    """One array an argument of `function`, in its dtype and shape; equal for equal seeds.

    Integers are in [0, smallest extent they index), second moments are not negative, steps and
    positions are small and positive, everything else is normal with unit deviation (weights of a
    contraction over K elements with 1/√K). Raises `InterpreterError` for dynamic shapes.
    """
    func = _function(module, function)
    generator = np.random.default_rng(seed)
    block = func.body.block
    return [
        _draw(generator, name, argument.type, uses_of(argument, module))
        for name, argument in zip(argument_names(func), block.args, strict=True)
    ]


def _function(module: ModuleOp, name: str) -> FuncOp:
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == name:
            return op
    raise InterpreterError(f"no such function: {name!r}", name=name)


def _draw(generator: np.random.Generator, name: str, type_: Attribute, uses: Uses) -> Any:
    if not is_static(type_):
        raise InterpreterError(f"no input can be drawn for {name!r} of type {type_}")
    dtype, shape = numpy_dtype(element_of(type_)), shape_of(type_)
    if dtype == numbers.BOOL:
        return generator.integers(0, 2, shape).astype(dtype)
    if numbers.is_integer(dtype):
        return _integers(generator, name, dtype, shape, uses)
    if dtype.kind == "c":
        real, imaginary = generator.standard_normal((2, *shape))
        return np.asarray(real + 1j * imaginary).astype(dtype)
    return np.asarray(_floats(generator, name, shape, uses)).astype(dtype)


def _integers(
    generator: np.random.Generator,
    name: str,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    uses: Uses,
) -> Array:
    width = numbers.bits(dtype)
    if dtype.kind == "u" and (uses.random or _RANDOM.search(name)) and not uses.extents:
        return generator.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    limit = min(uses.extents, default=_FREE_INTEGERS)
    low = 0
    if _STEP.search(name) and not shape:
        low, limit = (0, min(limit, 4)) if uses.extents else (1, 4)
    limit = max(low + 1, min(limit, 1 << (width - (1 if numbers.is_signed(dtype) else 0))))
    return numbers.convert(_covering(generator, low, limit, shape), dtype)


def _covering(generator: np.random.Generator, low: int, limit: int, shape: Sequence[int]) -> Array:
    """Random integers in [low, limit), each at least once where there is room for it (so that no
    segment of a segment reduction is empty)."""
    drawn = generator.integers(low, limit, shape).reshape(-1)
    if limit - low <= drawn.size:
        drawn[: limit - low] = np.arange(low, limit)
        generator.shuffle(drawn)
    return drawn.reshape(shape)


def _floats(generator: np.random.Generator, name: str, shape: Sequence[int], uses: Uses) -> Array:
    if _STEP.search(name) and not shape:
        return np.asarray(float(generator.integers(1, 4)))
    values = generator.standard_normal(shape)
    if uses.definite:
        return _definite(values)
    if uses.triangular:
        return values / shape[-1] + 2 * np.eye(shape[-1])
    if uses.not_negative or _SECOND.search(name):
        return np.abs(values) + (0.1 if uses.positive else 0.0)
    fan_in = set(uses.contracted)
    if _WEIGHTS.search(name):
        fan_in |= uses.contracted_left
    if fan_in:
        return values / np.sqrt(min(fan_in))
    return values


def _definite(values: Array) -> Array:
    """Hermitian positive definite matrices."""
    size = values.shape[-1]
    return np.matmul(values, np.swapaxes(values, -1, -2)) / max(size, 1) + np.eye(size)
