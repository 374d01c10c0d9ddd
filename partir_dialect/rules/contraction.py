"""Which dims of a product are batch, free and contracted? dot, dot_general, einsum, convolution.

`dot_general` is `([b,i,k],[b,k,j])->([b,i,j])`, any number of each; results are ordered batch, free
of the left, free of the right.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..stablehlo_attrs import DotAttr
from .base import Kind, Linearity, Rule, RuleFunction
from .builder import RuleBuilder, at, blocked, out
from .linearity import ADD, single
from .properties import attribute, numbers
from .reducers import element_text


def product_linearity(op: Operation) -> tuple[Linearity, ...]:
    """A product is linear in each side, for add; of integers only if the result is as wide as the
    operands (partial sums of narrow integers wrap)."""
    types = {element_text(value) for value in (*op.operands[:2], op.results[0])}
    integral = any(text[:1] in ("i", "u", "s") or text == "i1" for text in types)
    if "" in types or "i1" in types or (integral and len(types) > 1):
        return ()
    return (single((0, 1), ADD),)


def contracting_reducer(op: Operation) -> str:
    """The ⊕ of a contraction: add, on i1 or."""
    return "or" if element_text(op.results[0]) == "i1" else "add"


def dot_general(op: Operation) -> Rule:
    """Batch and free dimensions are parallel, contracted ones a sum."""
    dims = cast("DotAttr", numbers(op, "dot_dimension_numbers"))
    return _dot(
        op,
        tuple(zip(dims.lhs_batching_dimensions, dims.rhs_batching_dimensions, strict=True)),
        tuple(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True)),
    )


def dot(op: Operation) -> Rule:
    """The old product: the last dimension of the left with the first of the right."""
    rank = len(RuleBuilder(op).operands[0])
    return _dot(op, (), ((rank - 1, 0),))


def _dot(
    op: Operation, batching: tuple[tuple[int, int], ...], contracting: tuple[tuple[int, int], ...]
) -> Rule:
    builder = RuleBuilder(op)
    for result, (left, right) in enumerate(batching):
        builder.join(at(0, left), at(1, right), out(result))
    result = len(batching)
    for side in (0, 1):
        used = {pair[side] for pair in (*batching, *contracting)}
        for dim in range(len(builder.operands[side])):
            if dim not in used:
                builder.join(at(side, dim), out(result))
                result += 1
    for left, right in contracting:
        builder.join(
            at(0, left), at(1, right), kind=Kind.REDUCTION, reducer=contracting_reducer(op)
        )
    return builder.build(product_linearity(op))


def einsum(op: Operation) -> Rule:
    """`einsum_config = "ab,bc->ac"` read as it stands. Blocked are ellipses, diagonals, and letters
    of which the sizes differ (no verifier compares them)."""
    config = attribute(op, "einsum_config")
    text = cast("StringAttr", config).data.replace(" ", "")
    if "." in text:
        return blocked(op)
    builder = RuleBuilder(op)
    left, _, result = text.partition("->")
    operands = left.split(",")
    for letter in dict.fromkeys(left.replace(",", "")):
        if any(value.count(letter) > 1 for value in (*operands, result)):
            continue
        places = [at(k, value.index(letter)) for k, value in enumerate(operands) if letter in value]
        places += [out(result.index(letter))] if letter in result else []
        if len({builder.size(place) for place in places}) > 1:
            continue
        if letter in result:
            builder.join(*places)
        else:
            builder.join(*places, kind=Kind.REDUCTION, reducer=contracting_reducer(op))
    return builder.build(product_linearity(op) if len(operands) == 2 else ())


def ragged_dot(op: Operation) -> Rule:
    """A grouped product: batch dimensions and the free dimension of the right are parallel; the
    contracted one is a sum unless it is the ragged one; ragged and group dimensions are blocked."""
    dims = numbers(op, "ragged_dot_dimension_numbers")
    nested: Any = getattr(dims, "dot_dimension_numbers", dims)
    ragged = set(dims.lhs_ragged_dimensions)
    if ragged & set(nested.lhs_batching_dimensions) or ragged & set(
        nested.lhs_contracting_dimensions
    ):
        return blocked(op)  # results gain a group dimension in front, or groups split the batch
    builder = RuleBuilder(op)
    groups = set(dims.rhs_group_dimensions)
    batching = list(
        zip(nested.lhs_batching_dimensions, nested.rhs_batching_dimensions, strict=True)
    )
    for result, (left, right) in enumerate(batching):
        builder.join(at(0, left), at(1, right), out(result))
    contracted = list(
        zip(nested.lhs_contracting_dimensions, nested.rhs_contracting_dimensions, strict=True)
    )
    result = len(batching)
    for side in (0, 1):
        used = {pair[side] for pair in (*batching, *contracted)}
        used.update(groups if side else ())
        for dim in range(len(builder.operands[side])):
            if dim not in used:
                if side == 1 or dim not in ragged:
                    builder.join(at(side, dim), out(result))
                result += 1
    for left, right in contracted:
        builder.join(
            at(0, left), at(1, right), kind=Kind.REDUCTION, reducer=contracting_reducer(op)
        )
    return builder.build()


RULES: dict[str, RuleFunction] = {
    "stablehlo.dot_general": dot_general,
    "stablehlo.dot": dot,
    "stablehlo.einsum": einsum,
    "stablehlo.unary_einsum": einsum,
    "chlo.ragged_dot": ragged_dot,
}
