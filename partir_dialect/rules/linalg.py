"""Which dims are free in sorts, transforms and factorisations? The batch, and little else."""

from __future__ import annotations

from xdsl.ir import Operation

from .base import Rule, RuleFunction
from .builder import RuleBuilder, at, out
from .properties import integer, required


def batch_only(op: Operation, own_dims: int) -> Rule:
    """All operands and results share their leading dimensions; the last `own_dims` are blocked."""
    builder = RuleBuilder(op)
    share_batch(builder, len(builder.operands[0]) - own_dims)
    return builder.build()


def share_batch(builder: RuleBuilder, count: int) -> None:
    """One parallel factor for each of the first `count` dimensions, in everything that has them in
    equal size; a value that does not lead with the batch stays out, and blocks what it lacks."""
    for dim in range(count):
        places = [at(k, dim) for k, shape in enumerate(builder.operands) if len(shape) > dim]
        places += [out(dim, r) for r, shape in enumerate(builder.results) if len(shape) > dim]
        if len({builder.size(place) for place in places}) == 1:
            builder.join(*places)


def sort(op: Operation) -> Rule:
    """The sorted dimension is blocked, the others are parallel."""
    builder = RuleBuilder(op)
    rank = len(builder.operands[0])
    ordered = integer(op, "dimension", -1) % max(rank, 1)
    for dim in range(rank):
        if dim != ordered:
            everywhere = range(len(builder.operands))
            builder.join(*(at(k, dim) for k in everywhere), *(out(dim, k) for k in everywhere))
    return builder.build()


def top_k(op: Operation) -> Rule:
    """The last dimension is searched; the others are parallel."""
    return batch_only(op, 1)


def fft(op: Operation) -> Rule:
    """The transformed dimensions are the last ones."""
    return batch_only(op, len(required(op, "fft_length")))


def cholesky(op: Operation) -> Rule:
    """Matrix dimensions are blocked."""
    return batch_only(op, 2)


def triangular_solve(op: Operation) -> Rule:
    """Right-hand sides are independent: columns of b for `left_side`, else its rows."""
    builder = RuleBuilder(op)
    rank = len(builder.operands[0])
    share_batch(builder, rank - 2)
    free = rank - 1 if integer(op, "left_side") else rank - 2
    builder.join(at(1, free), out(free))
    return builder.build()


RULES: dict[str, RuleFunction] = {
    "stablehlo.cholesky": cholesky,
    "stablehlo.fft": fft,
    "stablehlo.sort": sort,
    "stablehlo.triangular_solve": triangular_solve,
    "chlo.top_k": top_k,
}
