"""What do we know of a custom call? A table by target, which users extend.

`register_custom_call("my.matmul", "i j, j k -> i k")` or, for what a string cannot say, a function
from the op to a `Rule`. A call that nobody registered may carry a rule of its own (JAX writes
`sdy.sharding_rule` on those it knows); else it has what is known of its target, else it is blocked.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..sdy_attrs import OpShardingRuleAttr
from ..sdy_values import ShardingRule
from .base import Dims, Factor, Kind, Rule, RuleFunction
from .builder import blocked
from .check import check_rule
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


def custom_call(op: Operation) -> Rule:
    """The rule of a call: as registered for its target, as written on it, as known, or blocked."""
    target = op.properties.get("call_target_name")
    name = cast("StringAttr", target).data if target is not None else ""
    written = op.attributes.get("sdy.sharding_rule")
    registered = _lookup(_registered, name)
    if registered is None and isinstance(written, OpShardingRuleAttr):
        return written_rule(op, written.data)
    known = registered or _lookup(KNOWN, name) or blocked
    return known(op)


def _lookup(table: Mapping[str, RuleFunction], target: str) -> RuleFunction | None:
    if target in table:
        return table[target]
    patterns = [pattern for pattern in table if fnmatchcase(target, pattern)]
    return table[patterns[-1]] if patterns else None


def written_rule(op: Operation, written: ShardingRule) -> Rule:
    """Shardy's rule in ours: factors on both sides are parallel, reductions are sums, and what is
    on one side only, permuted, replicated or not propagated is blocked.

    Raises `RuleError` if it does not fit the op.
    """
    kept = [n for n, size in enumerate(written.sizes) if size > 1]
    number = {n: k for k, n in enumerate(kept)}
    rule = Rule(
        tuple(_written_factor(written, n) for n in kept),
        _written_dims(written.operands, number),
        _written_dims(written.results, number),
    )
    check_rule(op, rule)
    return rule


def _written_factor(written: ShardingRule, number: int) -> Factor:
    sides = [
        any(number in made_of for dims in values for made_of in dims)
        for values in (written.operands, written.results)
    ]
    special = (*written.need_replication, *written.permutation, *written.blocked_propagation)
    size = written.sizes[number]
    if number in written.reduction and sides == [True, False]:
        return Factor(size, Kind.REDUCTION, reducer="add")
    if number in (*special, *written.reduction) or not all(sides):
        return Factor(size, Kind.BLOCKED)
    return Factor(size)


def _written_dims(values: tuple[Dims, ...], number: dict[int, int]) -> tuple[Dims, ...]:
    return tuple(
        tuple(tuple(number[n] for n in made_of if n in number) for made_of in dims)
        for dims in values
    )
