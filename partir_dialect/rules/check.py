"""Does a rule fit its op? The checks that every row of the registry must pass."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from ..errors import RuleError
from .base import REDUCERS, Dims, Factor, Kind, Rule
from .builder import Shape, shape_of

REWRITES = frozenset(
    {
        "concatenate",
        "convolution",
        "convolution_groups",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather_index",
        "init_once",
        "iota",
        "pad",
        "reduce_window",
        "reshape",
        "reverse",
        "scatter_index",
        "select_and_scatter",
        "slice",
    }
)
"""Every name that a rule may use for a local rewrite."""

RESIZING = frozenset(
    {"concatenate", "convolution", "pad", "reduce_window", "select_and_scatter", "slice"}
)
"""Rewrites of factors that join dimensions of different sizes."""


def check_rule(op: Operation, rule: Rule) -> None:
    """Raises `RuleError` unless the rule fits the op: one row for each operand and result and one
    entry for each dimension, sizes that multiply out, no unused factor, no factor twice in a value,
    reductions in no result and with a reducer, known rewrites, linear operands that exist."""
    _check_table(op, "operand", [shape_of(v.type) for v in op.operands], rule.operands, rule)
    _check_table(op, "result", [shape_of(v.type) for v in op.results], rule.results, rule)
    for number, factor in enumerate(rule.factors):
        _check_factor(op, number, factor, rule)
    for linear in rule.linear:
        beyond = [k for k in linear.operands if not 0 <= k < len(op.operands)]
        if beyond or not linear.operands:
            raise RuleError(f"{op.name}: linear in operands that it does not have, got: {beyond}")
        if not linear.reducers or linear.reducers - REDUCERS:
            raise RuleError(f"{op.name}: linear for unknown reducers, got: {set(linear.reducers)}")


def _check_table(
    op: Operation, what: str, shapes: list[Shape], table: tuple[Dims, ...], rule: Rule
) -> None:
    if len(table) != len(shapes):
        raise RuleError(f"{op.name} has {len(shapes)} {what}s, in the rule: {len(table)}")
    for index, (shape, dims) in enumerate(zip(shapes, table, strict=True)):
        where = f"{op.name}, {what} {index}"
        if len(dims) != len(shape):
            raise RuleError(f"{where} has rank {len(shape)}, in the rule: {len(dims)}")
        used = [f for made_of in dims for f in made_of]
        if len(set(used)) != len(used):
            raise RuleError(f"{where} has a factor twice, got: {dims}")
        for dim, (size, made_of) in enumerate(zip(shape, dims, strict=True)):
            if any(not 0 <= f < len(rule.factors) for f in made_of):
                raise RuleError(f"{where}, dimension {dim} has factors beyond the table: {made_of}")
            _check_dim(where, dim, size, [rule.factors[f] for f in made_of])


def _check_dim(where: str, dim: int, size: int, factors: list[Factor]) -> None:
    if size <= 1:
        if factors:
            raise RuleError(f"{where}, dimension {dim} of size {size} has factors: {factors}")
        return
    product = prod(factor.size for factor in factors)
    if len(factors) == 1 and factors[0].rewrite in RESIZING and size % product == 0:
        return
    if product != size:
        raise RuleError(f"{where}, dimension {dim} of size {size} has factors of size: {product}")


def _check_factor(op: Operation, number: int, factor: Factor, rule: Rule) -> None:
    where = f"{op.name}, factor {number}"
    in_operands = any(number in made_of for dims in rule.operands for made_of in dims)
    in_results = any(number in made_of for dims in rule.results for made_of in dims)
    if factor.size <= 1:
        raise RuleError(f"{where} must be larger than 1, got: {factor.size}")
    if not in_operands and not in_results:
        raise RuleError(f"{where} is in no dimension, got: {factor}")
    if factor.reducer is not None and factor.reducer not in REDUCERS:
        raise RuleError(f"{where} has an unknown reducer: {factor.reducer}")
    if factor.rewrite is not None and factor.rewrite not in REWRITES:
        raise RuleError(f"{where} has an unknown rewrite: {factor.rewrite}")
    partial = factor.kind is Kind.REDUCTION or (
        factor.kind is Kind.SPECIAL and in_operands and not in_results
    )
    if partial and factor.reducer is None:
        raise RuleError(f"{where} leaves partial results and has no reducer: {factor}")
    if factor.reducer is not None and (in_results or not partial):
        raise RuleError(f"{where} has a reducer without partial results: {factor}")
    if factor.kind is Kind.SPECIAL and factor.rewrite is None:
        raise RuleError(f"{where} is special without a rewrite: {factor}")
