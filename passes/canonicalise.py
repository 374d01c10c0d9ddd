"""Which ops say nothing? A reshape to the same shape, a convert to the same type, and the like.

Only ops whose result *is* their operand go; no number is computed. An op with a nest or a sharding
stays.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation

from ..partir_dialect.partir_types import NEST


def _numbers(op: Operation, name: str) -> tuple[int, ...] | None:
    attribute = op.properties.get(name)
    if not isinstance(attribute, DenseArrayBase):
        return None
    return tuple(int(value) for value in attribute.get_values())


def _same_type(op: Operation) -> bool:
    return op.operands[0].type == op.results[0].type


def _in_order(name: str) -> Callable[[Operation], bool]:
    def identity(op: Operation) -> bool:
        numbers = _numbers(op, name)
        return _same_type(op) and numbers == tuple(range(len(numbers or ())))

    return identity


def _zero(*names: str) -> Callable[[Operation], bool]:
    def identity(op: Operation) -> bool:
        lists = [_numbers(op, name) for name in names]
        return _same_type(op) and all(numbers is not None and not any(numbers) for numbers in lists)

    return identity


def _empty(name: str) -> Callable[[Operation], bool]:
    return lambda op: _numbers(op, name) == ()


_PLACED = frozenset({NEST, "sdy.sharding", "mhlo.sharding"})

# A result of the operand's type is the operand: that is the whole test for most of these.
_IDENTITIES: dict[str, Callable[[Operation], bool]] = {
    "sdy.func_data_flow_edge": lambda op: True,  # the edge of a function that has been inlined
    "stablehlo.bitcast_convert": _same_type,
    "stablehlo.broadcast_in_dim": _in_order("broadcast_dimensions"),
    "stablehlo.concatenate": lambda op: len(op.operands) == 1,
    "stablehlo.convert": _same_type,
    "stablehlo.pad": _zero("edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.reshape": _same_type,
    "stablehlo.reverse": _empty("dimensions"),
    "stablehlo.slice": _same_type,
    "stablehlo.transpose": _in_order("permutation"),
}


def drop_identities(op: Operation) -> int:
    """Replaces, inside `op`, each op that is an identity by its operand; how many there were."""
    count = 0
    for inner in list(op.walk()):
        test = _IDENTITIES.get(inner.name)
        if test is not None and _PLACED.isdisjoint(inner.attributes) and test(inner):
            inner.results[0].replace_all_uses_with(inner.operands[0])
            inner.detach()
            inner.erase()
            count += 1
    return count
