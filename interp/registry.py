"""Which NumPy function gives an op its meaning: tables from op name to a builder.

A *kernel* takes the operands of one device as arrays and returns one array or a tuple of them. A
*builder* reads the op's attributes once and returns the kernel, so that loops do not read them
again. Ops that need more than their operands have tables of their own: `CONTROL` (regions that run
under control flow) and `COMMUNICATION` (what devices say to each other).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from xdsl.ir import Operation

if TYPE_CHECKING:
    from .compiler import Context

Array = np.ndarray[Any, np.dtype[Any]]
Kernel = Callable[..., Any]
Builder = Callable[[Operation, "Context"], Kernel]

B = TypeVar("B", bound=Callable[..., Any])

KERNELS: dict[str, Builder] = {}
ELEMENTWISE: set[str] = set()
CONTROL: dict[str, Callable[..., Any]] = {}
COMMUNICATION: dict[str, Callable[..., Any]] = {}
CUSTOM_CALLS: dict[str, Builder] = {}


def _adder(table: dict[str, Any], names: tuple[str, ...]) -> Callable[[B], B]:
    def add(function: B) -> B:
        for name in names:
            assert name not in table, f"two meanings for {name}"
            table[name] = function
        return function

    return add


def implements(*names: str) -> Callable[[B], B]:
    """Registers the builder of a kernel over whole arrays."""
    return _adder(KERNELS, names)


def implements_elementwise(*names: str) -> Callable[[B], B]:
    """Registers a kernel that broadcasts, so that it may stand in a vectorised region body."""
    ELEMENTWISE.update(names)
    return _adder(KERNELS, names)


def controls(*names: str) -> Callable[[B], B]:
    """Registers an op that runs regions or calls functions."""
    return _adder(CONTROL, names)


def communicates(*names: str) -> Callable[[B], B]:
    """Registers an op whose result depends on the device or on other devices."""
    return _adder(COMMUNICATION, names)


def implements_call(*targets: str) -> Callable[[B], B]:
    """Registers the builder for custom calls to `targets`."""
    return _adder(CUSTOM_CALLS, targets)


def nullary(value: Array) -> Kernel:
    """A kernel that gives one value."""
    return lambda: value


def unary(function: Callable[[Array], Any]) -> Kernel:
    """A kernel of one operand (the helpers of this kind give the operands their type)."""
    return function


def binary(function: Callable[[Array, Array], Any]) -> Kernel:
    """A kernel of two operands."""
    return function


def ternary(function: Callable[[Array, Array, Array], Any]) -> Kernel:
    """A kernel of three operands."""
    return function
