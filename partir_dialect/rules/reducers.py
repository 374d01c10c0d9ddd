"""Which ⊕ does a region body compute, and is a constant the identity of ⊕?

On i1 StableHLO's addition and maximum are `or`, multiplication and minimum are `and`; bodies on i1
are named by what they compute.
"""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue

from ..constants import is_splat, to_numpy
from ..dtypes import numpy_dtype, type_text
from ..errors import PartirError
from .base import IDEMPOTENT

BODY_OPS = {
    "stablehlo.add": "add",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "mul",
    "stablehlo.and": "and",
    "stablehlo.or": "or",
}
_ON_BOOLEANS = {"add": "or", "max": "or", "mul": "and", "min": "and", "and": "and", "or": "or"}

_SPREADING = frozenset(
    {"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.slice"}
)


def element_type_of(value: SSAValue) -> Attribute | None:
    """The element type of a tensor value; None for what is no tensor."""
    return _element(value.type)


def _element(type_: Attribute) -> Attribute | None:
    return cast("Any", type_).element_type if isinstance(type_, TensorType) else None


def element_text(value: SSAValue) -> str:
    """The element type as MLIR spells it ('f32', 'i1'); '' for what is no tensor."""
    element = element_type_of(value)
    return "" if element is None else type_text(element)


def sum_reducer(value: SSAValue) -> str:
    """The ⊕ that puts a value together from masked parts: add, on i1 or."""
    return "or" if element_text(value) == "i1" else "add"


def body_reducers(region: Region, count: int) -> tuple[str | None, ...]:
    """The ⊕ of each of the `count` results of a reducer body `(a…, b…) -> (a ⊕ b…)`.

    None where a result is anything else than one known operation of its own two arguments: argmax
    pairs, conversions, calls, a body that returns an argument.
    """
    block = region.blocks[0]
    terminator = block.last_op
    if terminator is None or len(terminator.operands) != count or len(block.args) != 2 * count:
        return (None,) * count
    return tuple(
        _reducer(value, block.args[k], block.args[count + k])
        for k, value in enumerate(terminator.operands)
    )


def _reducer(value: SSAValue, left: BlockArgument, right: BlockArgument) -> str | None:
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    found = BODY_OPS.get(owner.name)
    if found is None or tuple(owner.operands) not in ((left, right), (right, left)):
        return None
    return _ON_BOOLEANS[found] if element_text(value) == "i1" else found


def common_reducer(region: Region, count: int) -> str | None:
    """The one ⊕ that all results of a body share; None if there is none."""
    found = set(body_reducers(region, count))
    return found.pop() if len(found) == 1 else None


def splat_scalar(value: SSAValue) -> Any | None:
    """The one number that a value holds everywhere, as a NumPy scalar; None if it is not known.

    Looks from a constant through broadcasts, other changes of shape, and conversions.
    """
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    if owner.name == "stablehlo.constant":
        held = owner.properties.get("value")
        if not isinstance(held, DenseIntOrFPElementsAttr):
            return None
        dense = cast("DenseIntOrFPElementsAttr[Any]", held)
        return to_numpy(dense).flat[0] if is_splat(dense) else None
    if owner.name in _SPREADING:
        return splat_scalar(owner.operands[0])
    if owner.name == "stablehlo.convert":
        return _converted(splat_scalar(owner.operands[0]), value)
    return None


def _converted(scalar: Any | None, value: SSAValue) -> Any | None:
    element = element_type_of(value)
    if scalar is None or element is None:
        return None
    target = numpy_dtype(element)
    if not np.isfinite(np.float64(np.real(scalar))) and target.kind in "iub":
        return None
    with np.errstate(all="ignore"):
        return np.asarray(scalar).astype(target)[()]


def is_identity(value: SSAValue, reducer: str) -> bool:
    """Whether a value is known to hold the identity of ⊕ everywhere (x ⊕ identity = x)."""
    try:
        scalar = splat_scalar(value)
    except PartirError:  # an element type without a dtype
        return False
    if scalar is None:
        return False
    if reducer == "add":
        return bool(scalar == 0)
    if reducer == "mul":
        return bool(scalar == 1)
    bounds = _bounds(np.asarray(scalar).dtype)
    if bounds is None:
        return False
    lowest, highest = bounds
    neutral = {"max": lowest, "min": highest}
    if isinstance(lowest, int):
        neutral |= {"or": 0, "and": -1 if lowest < 0 else highest}
    return bool(neutral.get(reducer) == scalar)


def _bounds(dtype: np.dtype[Any]) -> tuple[float, float] | None:
    """The least and the greatest number of an ordered type: int for integers and i1, else ±inf."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "c":
        return None
    try:
        info = cast("Any", ml_dtypes).iinfo(dtype)
    except ValueError:
        return -np.inf, np.inf
    return int(info.min), int(info.max)


def counted_once(values: tuple[SSAValue, ...], reducer: str) -> bool:
    """Whether initial values may enter on every device: ⊕ is idempotent, or they are neutral."""
    return reducer in IDEMPOTENT or all(is_identity(value, reducer) for value in values)
