"""What do an op's properties say, as Python values?

Properties may be spelled as arrays or, in older modules, as dense tensors; both give tuples.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from ..constants import to_numpy


def attribute(op: Operation, name: str) -> Attribute | None:
    """The property (or discardable attribute) of that name."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def numbers(op: Operation, name: str) -> Any:
    """A structured property (`dot_dimension_numbers`, …) whose fields are tuples of int."""
    found = attribute(op, name)
    assert found is not None, f"{op.name} lacks {name}"
    return found


def integers(op: Operation, name: str) -> tuple[int, ...] | None:
    """An array property; None when the op does not have it."""
    found = attribute(op, name)
    if found is None:
        return None
    if isinstance(found, DenseArrayBase):
        return tuple(int(v) for v in cast("Any", found).get_values())
    assert isinstance(found, DenseIntOrFPElementsAttr), f"{op.name}.{name}: {found}"
    return tuple(int(v) for v in to_numpy(cast("Any", found)).reshape(-1))


def required(op: Operation, name: str) -> tuple[int, ...]:
    """An array property that the op must have."""
    found = integers(op, name)
    assert found is not None, f"{op.name} lacks {name}"
    return found


def integer(op: Operation, name: str, default: int | None = None) -> int:
    """An integer property."""
    found = attribute(op, name)
    if found is None and default is not None:
        return default
    assert isinstance(found, IntegerAttr), f"{op.name}.{name}: {found}"
    return cast("Any", found).value.data


def pairs(op: Operation, name: str, count: int) -> tuple[tuple[int, int], ...]:
    """A property of `count` (low, high) pairs, such as `padding`; absent or empty means zeros."""
    flat = integers(op, name)
    if not flat:
        return ((0, 0),) * count
    return tuple((flat[2 * k], flat[2 * k + 1]) for k in range(count))
