"""What do we know of a custom call? A table by target, which users extend.

`register_custom_call("my.matmul", "i j, j k -> i k")` or, for what a string cannot say, a function
from the op to a `Rule`. Targets that nobody registered are all blocked.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from .base import Rule, RuleFunction
from .builder import blocked
from .elementwise import elementwise_rule
from .linalg import batch_only
from .notation import parse_rule


def _matrices(op: Operation) -> Rule:
    """Batched matrix algebra: everything leads with the batch of the first operand."""
    return batch_only(op, 2)


def _rows(op: Operation) -> Rule:
    """A search along the last dimension."""
    return batch_only(op, 1)


_ELEMENTWISE = (
    "Sharding annotate_device_placement MoveToHost MoveToDevice mhlo.erf mhlo.erf_inv mhlo.asin "
    "mhlo.acos mhlo.atanh mhlo.acosh mhlo.asinh mhlo.sinh mhlo.cosh mhlo.tan"
).split()
_MATRICES = (
    "lapack_*_ffi cusolver_*_ffi cublas_*_ffi hipsolver_*_ffi Eigh Qr LuDecomposition Cholesky "
    "ProductOfElementaryHouseholderReflectors"
).split()
KNOWN: Mapping[str, RuleFunction] = MappingProxyType(
    {
        **dict.fromkeys(_ELEMENTWISE, elementwise_rule),
        **dict.fromkeys(_MATRICES, _matrices),
        **dict.fromkeys(("mhlo.topk", "TopK"), _rows),
    }
)
"""What comes with the registry: glob patterns of targets. Only `_ffi` LAPACK calls: the older ones
take their batch size as an operand, which retyping does not change."""

_registered: dict[str, RuleFunction] = {}


def register_custom_call(target: str, rule: str | RuleFunction) -> None:
    """Gives custom calls with that target (a name or a glob pattern) a rule, before the known ones.

    `rule` is a string such as "i j, j k -> i k" (`notation.parse_rule`) or a function of the op;
    the latest registration of a target holds. Raises `RuleError` for a malformed string.
    """
    if isinstance(rule, str):
        rule = parse_rule(rule, f"<rule of {target}>").rule_of
    _registered.pop(target, None)
    _registered[target] = rule


def unregister_custom_call(target: str) -> None:
    """Takes a registration back; a target that was not registered is left alone."""
    _registered.pop(target, None)


def custom_call_rule(target: str) -> RuleFunction | None:
    """The rule function of a target, registered or known; None if it would be blocked."""
    for table in (_registered, KNOWN):
        if target in table:
            return table[target]
        for pattern in reversed(list(table)):
            if fnmatchcase(target, pattern):
                return table[pattern]
    return None


def custom_call(op: Operation) -> Rule:
    """The rule of the call's target; all blocked if there is none."""
    target = op.properties.get("call_target_name")
    found = custom_call_rule(cast("StringAttr", target).data) if target is not None else None
    return blocked(op) if found is None else found(op)
