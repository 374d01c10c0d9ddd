"""Which dims are combined, and by which ⊕? reduce and its kin.

`([i,j,k],[])->([i,k])` with j a reduction by the body's ⊕. Operands and initial values come in two
rows of equal length; initial values are scalars.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation

from .base import Kind, Rule, RuleFunction
from .builder import RuleBuilder, at, out
from .linearity import joint
from .properties import integer, required
from .reducers import common_reducer, counted_once


def reduce_context(op: Operation) -> Hashable:
    """What a reduce reads beside its types and properties: the body's ⊕ and the initial values."""
    count = len(op.operands) // 2
    reducer = common_reducer(op.regions[0], count)
    return reducer, reducer is not None and counted_once(tuple(op.operands[count:]), reducer)


def reduce(op: Operation) -> Rule:
    """Reduced dimensions are a reduction if every result has the same known ⊕, else blocked (argmax
    pairs must be combined together). An initial value that is not the identity is counted once."""
    builder = RuleBuilder(op)
    count = len(builder.operands) // 2
    inputs = range(count)
    reducer = common_reducer(op.regions[0], count)
    once = reducer is not None and counted_once(tuple(op.operands[count:]), reducer)
    reduced = set(required(op, "dimensions"))
    result = 0
    for dim in range(len(builder.operands[0])):
        places = [at(k, dim) for k in inputs]
        if dim not in reduced:
            builder.join(*places, *(out(result, k) for k in inputs))
            result += 1
        elif reducer is not None:
            builder.join(
                *places,
                kind=Kind.REDUCTION,
                reducer=reducer,
                rewrite=None if once else "init_once",
            )
    linear = (joint(inputs, frozenset({reducer})),) if reducer is not None and once else ()
    return builder.build(linear)


def batch_norm_inference(op: Operation) -> Rule:
    """Elementwise over the operand; the feature dimension is shared with all four vectors."""
    builder = RuleBuilder(op)
    feature = integer(op, "feature_index")
    for dim in range(len(builder.operands[0])):
        vectors = [at(k, 0) for k in range(1, 5)] if dim == feature else []
        builder.join(at(0, dim), *vectors, out(dim))
    return builder.build()


def batch_norm_training(op: Operation) -> Rule:
    """Features are parallel; the statistics need every other dimension whole."""
    builder = RuleBuilder(op)
    feature = integer(op, "feature_index")
    builder.join(at(0, feature), at(1, 0), at(2, 0), out(feature), out(0, 1), out(0, 2))
    return builder.build()


def batch_norm_grad(op: Operation) -> Rule:
    """Features are parallel in operand, scale, mean, variance, gradient and all three results."""
    builder = RuleBuilder(op)
    feature = integer(op, "feature_index")
    builder.join(
        at(0, feature),
        *(at(k, 0) for k in (1, 2, 3)),
        at(4, feature),
        out(feature),
        out(0, 1),
        out(0, 2),
    )
    return builder.build()


RULES: dict[str, RuleFunction] = {
    "stablehlo.batch_norm_grad": batch_norm_grad,
    "stablehlo.batch_norm_inference": batch_norm_inference,
    "stablehlo.batch_norm_training": batch_norm_training,
}
