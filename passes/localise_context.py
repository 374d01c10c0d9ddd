"""What may a local rewrite look at, and where does it put its ops?

A rewrite gets an op whose operands and results have their local types. It emits what comes before
the op, changes the op in place, and emits behind it what stands for its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ..engine.graph import OpShape
from ..partir_dialect import partir_spmd as partir
from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.mesh import Mesh
from .emit import Emitter, tensor_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Context:
    """The mesh, the op's factors, the axes on the factor (names, major to minor), and the global
    shapes of the operands and results.

    `after` emits behind the op; `results` are the values that stand for the op's results, which a
    rewrite may replace; `received` what came from other tiles, in the order of the op's pieces.
    """

    mesh: Mesh
    shape: OpShape
    factor: int
    axes: tuple[str, ...]
    global_operands: tuple[Shape, ...]
    global_results: tuple[Shape, ...]
    after: Emitter
    results: list[SSAValue]
    received: tuple[SSAValue, ...] = ()

    @property
    def tiles(self) -> int:
        """How many tiles the factor is cut into."""
        count = 1
        for axis in self.axes:
            count *= self.mesh.size(axis)
        return count

    def index(self, emit: Emitter) -> SSAValue:
        """The number of the device's tile (i32)."""
        return device_index(emit, self.mesh, self.axes)


Rewrite = Callable[[Operation, Context, Emitter], None]
"""(op, context, emitter in front of the op)."""


def device_index(emit: Emitter, mesh: Mesh, axes: Sequence[str]) -> SSAValue:
    """The position of the device along several axes, the first the major one (i32)."""
    index = emit.insert(partir.AxisIndexOp(axes[0])).results[0]
    for axis in axes[1:]:
        index = emit.multiply(index, emit.integer(mesh.size(axis)))
        index = emit.add(index, emit.insert(partir.AxisIndexOp(axis)).results[0])
    return index


def retype(value: SSAValue, shape: Sequence[int]) -> None:
    """Gives a value another shape in place."""
    type_ = tensor_of(value)
    local: Attribute = TensorType(type_.element_type, shape, type_.encoding)
    value._type = local  # pyright: ignore[reportPrivateUsage]


def identity_value(reducer: str, element: Attribute) -> Any:
    """The identity element of ⊕ for an element type, as a Python or NumPy number."""
    if reducer in ("add", "or"):
        return 0
    if reducer == "mul":
        return 1
    low, high = value_range(numpy_dtype(element))
    if reducer == "and":  # all bits set
        return high if low == 0 else -1
    return low if reducer == "max" else high


def value_range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value of a type; for floats the infinities."""
    if dtype == np.bool_:
        return 0, 1
    try:
        info = ml_dtypes.iinfo(dtype)
    except (ValueError, TypeError):
        return -np.inf, np.inf
    return int(info.min), int(info.max)
