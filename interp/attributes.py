"""How to read the properties of an op as Python values, whatever attribute class holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation

from ..partir_dialect.constants import to_numpy
from .faults import InterpreterError
from .registry import Array


def find(op: Operation, name: str) -> Any:
    """The property or attribute `name`, or None."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def need(op: Operation, name: str) -> Any:
    """The property or attribute `name`; raises `InterpreterError` if there is none."""
    found = find(op, name)
    if found is None:
        raise InterpreterError(f"{op.name} needs the attribute {name!r}")
    return found


def word(attribute: Attribute) -> str:
    """The text of a string, an enumeration or a symbol."""
    if isinstance(attribute, SymbolRefAttr):
        return attribute.string_value()
    return str(attribute.data)  # type: ignore[attr-defined]


def text(op: Operation, name: str, default: str | None = None) -> str:
    """A string or enumeration property."""
    found = find(op, name)
    if found is None and default is not None:
        return default
    return word(need(op, name))


def integer(op: Operation, name: str, default: int | None = None) -> int:
    """An integer or boolean property."""
    found = find(op, name)
    if found is None and default is not None:
        return default
    return number(need(op, name))


def number(attribute: Attribute) -> int:
    """The value of an integer or boolean attribute; a boolean is 0 or 1."""
    assert isinstance(attribute, IntegerAttr)
    typed = cast("IntegerAttr[Any]", attribute)
    value = int(typed.value.data)
    return abs(value) if str(typed.type) == "i1" else value


def values(attribute: Any) -> Array:
    """The numbers of an `array<i64: …>` or a `dense<…>` attribute, in its own shape."""
    if isinstance(attribute, DenseArrayBase):
        return np.array(cast("DenseArrayBase[Any]", attribute).get_values())
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        return to_numpy(cast("DenseIntOrFPElementsAttr[Any]", attribute))
    if isinstance(attribute, ArrayAttr):
        items = cast("ArrayAttr[Attribute]", attribute).data
        return np.array([number(item) for item in items], np.int64)
    raise InterpreterError(f"expected a list of integers, got: {attribute}")


def integers(op: Operation, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """A list of integers; booleans as 0 and 1."""
    found = find(op, name)
    if found is None:
        if default is None:
            need(op, name)
        return tuple(default or ())
    return tuple(map(int, values(found).reshape(-1)))


def table(op: Operation, name: str) -> Array | None:
    """A two-dimensional integer property such as `padding` or `replica_groups`."""
    found = find(op, name)
    return None if found is None else values(found).astype(np.int64)


def element_of(type_: Attribute) -> Attribute:
    """The element type of a tensor type; any other type itself."""
    return (
        cast("TensorType[Attribute]", type_).element_type
        if isinstance(type_, TensorType)
        else type_
    )


def is_complex(type_: Attribute) -> bool:
    """Whether a tensor type has complex elements."""
    return isinstance(element_of(type_), ComplexType)


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of a tensor type."""
    assert isinstance(type_, TensorType)
    return cast("TensorType[Attribute]", type_).get_shape()


def is_tensor(type_: Attribute) -> bool:
    """Whether it is a tensor type."""
    return isinstance(type_, TensorType)


def is_static(type_: Attribute) -> bool:
    """Whether it is a tensor type all of whose sizes are known."""
    return is_tensor(type_) and -1 not in shape_of(type_)


def operand_shape(op: Operation, index: int) -> tuple[int, ...]:
    return shape_of(op.operands[index].type)


def result_shape(op: Operation, index: int = 0) -> tuple[int, ...]:
    return shape_of(op.results[index].type)
