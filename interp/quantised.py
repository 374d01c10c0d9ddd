"""What quantised values are: stored integers that stand for scale · (stored − zero point).

An op on quantised values computes on the numbers that they stand for, and stores the result again:
the specification's dequantise, op, quantise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation

from ..partir_dialect.quant import UniformType
from .attributes import element_of
from .faults import InterpreterError
from .registry import Array, Kernel

_FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
_FORM = re.compile(
    r"(?P<sign>[iu])(?P<width>\d+)(?:<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)"
    r"(?::(?P<axis>\d+))?,\s*(?P<parameters>.*)\Z",
    re.S,
)


@dataclass(frozen=True)
class Quantised:
    """A uniform quantisation: the stored type and range, scales and zero points (one, or one for
    each index of dimension `axis`), and the type of the numbers that it stands for."""

    storage: np.dtype[Any]
    low: int
    high: int
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None
    expressed: np.dtype[Any]

    def _along(self, values: Sequence[float], rank: int) -> Array:
        side = [1] * rank
        if self.axis is not None:
            side[self.axis] = len(values)
        return np.array(values, np.float64).reshape(side)

    def numbers(self, stored: Array) -> Array:
        """What the stored integers stand for."""
        zero, scale = self._along(self.zeros, stored.ndim), self._along(self.scales, stored.ndim)
        return ((stored.astype(np.float64) - zero) * scale).astype(self.expressed)

    def store(self, numbers: Array) -> Array:
        """The nearest stored integers, ties to even, at most the ends of the range."""
        zero, scale = self._along(self.zeros, numbers.ndim), self._along(self.scales, numbers.ndim)
        rounded = np.rint(numbers.astype(np.float64) / scale) + zero
        return np.clip(rounded, self.low, self.high).astype(self.storage)


def quantised(type_: Attribute) -> Quantised | None:
    """The quantisation of a type's elements, or None; raises `InterpreterError` for a form that is
    not understood."""
    element = element_of(type_)
    if not isinstance(element, UniformType):
        return None
    match = _FORM.match(element.data.strip())
    if match is None or match["expressed"] not in _FLOATS:
        raise InterpreterError(f"a quantised type that is not understood: {element}")
    width, signed = int(match["width"]), match["sign"] == "i"
    storage = np.dtype(f"{'i' if signed else 'u'}{max(8, width) // 8}")
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    pairs = [part.partition(":") for part in match["parameters"].strip("{} \n").split(",")]
    return Quantised(
        storage,
        int(match["low"] or low),
        int(match["high"] or high),
        tuple(float(scale) for scale, _, _ in pairs),
        tuple(int(zero or 0) for _, _, zero in pairs),
        int(match["axis"]) if match["axis"] else None,
        np.dtype(_FLOATS[match["expressed"]]),
    )


def is_quantised(op: Operation) -> bool:
    """Whether the op takes or gives quantised values."""
    values = (*op.operands, *op.results)
    return any(isinstance(element_of(value.type), UniformType) for value in values)


def on_numbers(op: Operation, kernel: Kernel) -> Kernel:
    """A kernel of floats as one of stored integers."""
    inputs = [quantised(value.type) for value in op.operands]
    outputs = [quantised(value.type) for value in op.results]

    def compute(*stored: Array) -> list[Array]:
        numbers = [a if q is None else q.numbers(a) for q, a in zip(inputs, stored, strict=True)]
        outcome: Any = kernel(*numbers)
        several = cast(
            "Sequence[Any]", outcome if isinstance(outcome, (list, tuple)) else [outcome]
        )
        return [
            np.asarray(a) if q is None else q.store(np.asarray(a))
            for q, a in zip(outputs, several, strict=True)
        ]

    return compute
