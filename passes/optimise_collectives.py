"""`partir-optimise-collectives`: cheaper collectives for the same values, in hand-written IR.

Precondition and postcondition: a device-local module with collectives by mesh axis. On partir's own
output the pass changes nothing, since the plan has chosen these forms already.

| before | after |
|---|---|
| a slice of a gather over the same axes of the same dimension | nothing |
| a slice of a gather over the same axes of another dimension | `all_to_all` |
| a slice of an `all_reduce` over the same axes | `reduce_scatter` |
| a gather of a slice over the same axes of the same dimension | nothing |
| the sum of two `all_reduce "add"` over the same axes | one `all_reduce` of the sum |

```mlir
%1 = partir.all_reduce "add" ["batch"] %0 : tensor<256x8xf32>
%2 = partir.all_slice %1 [["batch"], []] : tensor<256x8xf32> -> tensor<64x8xf32>
```
becomes
```mlir
%1 = partir.reduce_scatter "add" [["batch"], []] %0 : tensor<256x8xf32> -> tensor<64x8xf32>
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ..partir_dialect.partir_spmd import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    ReduceScatterOp,
)
from ..partir_dialect.stablehlo import AddOp


def _one_use(value: SSAValue) -> bool:
    return value.first_use is not None and value.has_one_use()


def _only_dim(axes: Sequence[Sequence[str]]) -> int | None:
    """The one dimension that has axes, or None."""
    dims = [d for d, names in enumerate(axes) if names]
    return dims[0] if len(dims) == 1 else None


class SliceOfGather(RewritePattern):
    """A gather that is sliced again moves tiles at most."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllSliceOp, rewriter: PatternRewriter) -> None:
        gather = op.source.owner
        if not isinstance(gather, AllGatherOp) or not _one_use(gather.result):
            return
        if op.dim_axes == gather.dim_axes and op.result.type == gather.source.type:
            rewriter.replace(op, [], [gather.source])
            rewriter.erase(gather)
            return
        gathered, sliced = _only_dim(gather.dim_axes), _only_dim(op.dim_axes)
        if gathered is None or sliced is None or gathered == sliced:
            return
        axes = gather.dim_axes[gathered]
        if axes == op.dim_axes[sliced]:
            exchange = AllToAllOp(gather.source, gathered, sliced, axes, op.result.type)
            rewriter.replace(op, exchange)
            rewriter.erase(gather)


class SliceOfReduce(RewritePattern):
    """A reduction of which each device keeps its tile is a reduce_scatter."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllSliceOp, rewriter: PatternRewriter) -> None:
        reduce = op.source.owner
        if not isinstance(reduce, AllReduceOp) or not _one_use(reduce.result):
            return
        if sorted(reduce.axis_names) != sorted(a for dim in op.dim_axes for a in dim):
            return
        scatter = ReduceScatterOp(reduce.source, reduce.reducer.data, op.dim_axes, op.result.type)
        rewriter.replace(op, scatter)
        rewriter.erase(reduce)


class GatherOfSlice(RewritePattern):
    """A slice that is gathered again is what it was."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllGatherOp, rewriter: PatternRewriter) -> None:
        part = op.source.owner
        if not isinstance(part, AllSliceOp) or part.dim_axes != op.dim_axes:
            return
        if op.result.type == part.source.type:
            rewriter.replace(op, [], [part.source])
            if part.result.first_use is None:
                rewriter.erase(part)


class SumOfReductions(RewritePattern):
    """Two sums over the same axes are reduced once, after they have been added."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.name != AddOp.name:
            return
        left, right = (operand.owner for operand in op.operands)
        if not isinstance(left, AllReduceOp) or not isinstance(right, AllReduceOp):
            return
        if left is right or not (_one_use(left.result) and _one_use(right.result)):
            return
        if {left.reducer.data, right.reducer.data} != {"add"}:
            return
        if sorted(left.axis_names) != sorted(right.axis_names):
            return
        operands = [left.source, right.source]
        total = AddOp.create(operands=operands, result_types=[left.source.type])
        rewriter.replace(op, [total, AllReduceOp(total.results[0], "add", left.axis_names)])
        rewriter.erase(left)
        rewriter.erase(right)


PATTERNS: tuple[RewritePattern, ...] = (
    SliceOfGather(),
    SliceOfReduce(),
    GatherOfSlice(),
    SumOfReductions(),
)


def optimise_collectives(module: ModuleOp) -> bool:
    """Applies the patterns until none matches; says whether any did."""
    walker = PatternRewriteWalker(GreedyRewritePatternApplier(list(PATTERNS), dce_enabled=False))
    return walker.rewrite_module(module)


@dataclass(frozen=True)
class OptimiseCollectivesPass(ModulePass):
    """Replaces collectives by cheaper ones: see the module."""

    name = "partir-optimise-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        optimise_collectives(op)
