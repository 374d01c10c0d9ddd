"""The tile-mapping registry: what tiling an axis along each dimension of an op means."""

from __future__ import annotations

from .base import IDEMPOTENT, REDUCERS, Dims, Factor, Kind, Linearity, Rule, RuleFunction
from .check import check_rule
from .custom import register_custom_call, unregister_custom_call
from .notation import parse_rule
from .reducers import is_identity
from .registry import has_rule, rule_of
from .show import rule_text

__all__ = [
    "IDEMPOTENT",
    "REDUCERS",
    "Dims",
    "Factor",
    "Kind",
    "Linearity",
    "Rule",
    "RuleFunction",
    "check_rule",
    "has_rule",
    "is_identity",
    "parse_rule",
    "register_custom_call",
    "rule_of",
    "rule_text",
    "unregister_custom_call",
]
