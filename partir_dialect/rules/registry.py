"""Which rule does an op have? The tile-mapping registry: one table from op name to rule.

`rule_of` is the only way in. Rules are memoised by name, types and what else they read, so equal
ops share one `Rule` object; the memo is a cache and never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from xdsl.ir import Operation

from . import contraction, control, elementwise, indexing, linalg, reduction, shape, window
from .base import Rule, RuleFunction
from .builder import blocked
from .custom import custom_call

_MEMO_LIMIT = 100_000

Reads = Callable[[Operation], Hashable]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: the rule function, and what it reads beside operand and result types (None: anything,
    so that it is never memoised)."""

    function: RuleFunction
    reads: Reads | None


def _properties(op: Operation) -> Hashable:
    return tuple(op.properties.items()), tuple(op.attributes.items())


def _nothing(op: Operation) -> Hashable:
    return None


def _with_context(context: Reads) -> Reads:
    return lambda op: (tuple(op.properties.items()), context(op))


_FAMILIES: tuple[tuple[dict[str, RuleFunction], Reads | None], ...] = (
    (control.RULES, _nothing),
    (elementwise.TYPES_ONLY, _nothing),
    (elementwise.RULES, _properties),
    (shape.RULES, _properties),
    (shape.CONSTANTS, shape.holds_splat),
    ({"stablehlo.pad": shape.pad}, _with_context(shape.padding_reducers)),
    (contraction.RULES, _properties),
    ({"stablehlo.reduce": reduction.reduce}, _with_context(reduction.reduce_context)),
    (reduction.RULES, _properties),
    (indexing.RULES, _properties),
    ({"stablehlo.scatter": indexing.scatter}, _with_context(indexing.scatter_context)),
    (window.RULES, _properties),
    (
        {
            "stablehlo.reduce_window": window.reduce_window,
            "stablehlo.select_and_scatter": window.select_and_scatter,
        },
        _with_context(window.window_context),
    ),
    (linalg.RULES, _properties),
    ({"stablehlo.custom_call": custom_call}, None),
)
RULES: dict[str, Entry] = {
    name: Entry(function, reads) for rows, reads in _FAMILIES for name, function in rows.items()
}
"""The registry itself: a row for each op of StableHLO and CHLO, and the identities of sdy."""

_UNKNOWN = Entry(blocked, _nothing)
_memo: dict[Hashable, Rule] = {}


def has_rule(name: str) -> bool:
    """Whether the registry has a row for ops of that name (others are all blocked)."""
    return name in RULES


def rule_of(op: Operation) -> Rule:
    """The factor table of an op; all blocked if the op is unknown. Never fails on valid IR."""
    entry = RULES.get(op.name, _UNKNOWN)
    if entry.reads is None:
        return entry.function(op)
    key = (
        op.name,
        tuple([value.type for value in op.operands]),
        tuple([value.type for value in op.results]),
        entry.reads(op),
    )
    found = _memo.get(key)
    if found is None:
        if len(_memo) >= _MEMO_LIMIT:
            _memo.clear()
        found = _memo[key] = entry.function(op)
    return found
