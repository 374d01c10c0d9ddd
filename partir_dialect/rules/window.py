"""Which dims does a sliding window touch? convolution, reduce_window, select_and_scatter.

A window of one element that moves by one touches nothing. Windows that do not overlap and are not
padded lie within tiles: `([jk])->([j])`, j parallel. All other windows need a halo: special.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.ir import Operation

from ..stablehlo_attrs import ConvAttr
from .base import Kind, Rule, RuleFunction
from .builder import Place, RuleBuilder, at, out
from .contraction import contracting_reducer, product_linearity
from .linearity import joint
from .properties import integer, integers, numbers, pairs
from .reducers import common_reducer, counted_once


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves along one dimension: `source` elements in, `target` positions out."""

    source: int
    target: int
    size: int
    stride: int
    low: int
    high: int
    base_dilation: int
    dilation: int
    turned: bool = False

    @property
    def plain(self) -> bool:
        """Neither padded nor dilated."""
        return (self.low, self.high, self.base_dilation) == (0, 0, 1) and (
            self.dilation == 1 or self.size == 1
        )

    @property
    def trivial(self) -> bool:
        """Every element is its own window."""
        return self.plain and self.size == self.stride == 1

    @property
    def apart(self) -> bool:
        """The source is cut into `target` runs of `stride` elements with one window in each."""
        return self.plain and self.size <= self.stride and self.source == self.target * self.stride

    @property
    def total(self) -> bool:
        """The one window is the whole source."""
        return self.plain and self.target == 1 and self.size == self.source

    @property
    def running(self) -> bool:
        """A window about as long as the source, as in a cumulative sum: a halo of everything."""
        return self.target > 1 and (self.size - 1) * self.dilation + 1 >= self.source


def _windows(op: Operation, source: tuple[int, ...], target: tuple[int, ...]) -> list[Window]:
    """The window of each dimension, of an op that has `window_dimensions` for all of them."""
    rank = len(source)
    ones = (1,) * rank
    sizes = integers(op, "window_dimensions") or ones
    strides = integers(op, "window_strides") or ones
    base = integers(op, "base_dilations") or ones
    dilations = integers(op, "window_dilations") or ones
    padding = pairs(op, "padding", rank)
    return [
        Window(source[d], target[d], sizes[d], strides[d], *padding[d], base[d], dilations[d])
        for d in range(rank)
    ]


def _slide(
    builder: RuleBuilder,
    window: Window,
    sources: list[Place],
    targets: list[Place],
    rewrite: str,
) -> None:
    """The factors of a dimension that a window slides along, without a kernel of its own."""
    if min(window.source, window.target) < 0:
        return
    if window.trivial:
        builder.join(*sources, *targets)
    elif window.apart:
        builder.factor(window.target, *sources, *targets)
        builder.factor(window.stride, *sources, kind=Kind.BLOCKED)
    elif not window.running:
        builder.join(*sources, *targets, kind=Kind.SPECIAL, rewrite=rewrite)


def reduce_window(op: Operation) -> Rule:
    """Dimensions without a window are parallel; others need a halo, cumulative ones are blocked."""
    builder = RuleBuilder(op)
    count = len(builder.operands) // 2
    for dim, window in enumerate(_windows(op, builder.operands[0], builder.results[0])):
        sources = [at(k, dim) for k in range(count)]
        targets = [out(dim, k) for k in range(count)]
        _slide(builder, window, sources, targets, "reduce_window")
    reducer = common_reducer(op.regions[0], count)
    if reducer is not None and counted_once(tuple(op.operands[count:]), reducer):
        return builder.build((joint(range(count), frozenset({reducer})),))
    return builder.build()


def select_and_scatter(op: Operation) -> Rule:
    """Operand and result have the same shape, the source one element for each window."""
    builder = RuleBuilder(op)
    for dim, window in enumerate(_windows(op, builder.operands[0], builder.operands[1])):
        _slide(builder, window, [at(0, dim), out(dim)], [at(1, dim)], "select_and_scatter")
    reducer = common_reducer(op.regions[1], 1)
    if reducer is not None and counted_once((op.operands[2],), reducer):
        return builder.build((joint((1,), frozenset({reducer})),))
    return builder.build()


def window_context(op: Operation) -> tuple[str | None, bool]:
    """What these ops read beside types and properties: the ⊕ of the last region, the init value."""
    scatters = op.name == "stablehlo.select_and_scatter"
    count = 1 if scatters else len(op.operands) // 2
    inits = (op.operands[2],) if scatters else tuple(op.operands[count:])
    reducer = common_reducer(op.regions[-1], count)
    return reducer, reducer is not None and counted_once(inits, reducer)


def convolution(op: Operation) -> Rule:
    """`([b,x,gi],[k,i,go])->([b,x,go])`, i a sum; space needs a halo unless windows lie apart; the
    group factor is the major part of the feature (or batch) dimensions."""
    builder = RuleBuilder(op)
    dims = cast("ConvAttr", numbers(op, "dimension_numbers"))
    _features(op, builder, dims)
    spatial = zip(
        dims.input_spatial_dimensions,
        dims.kernel_spatial_dimensions,
        dims.output_spatial_dimensions,
        strict=True,
    )
    rank = len(dims.input_spatial_dimensions)
    strides = integers(op, "window_strides") or (1,) * rank
    base = integers(op, "lhs_dilation") or (1,) * rank
    dilations = integers(op, "rhs_dilation") or (1,) * rank
    turned = integers(op, "window_reversal") or (0,) * rank
    padding = pairs(op, "padding", rank)
    for s, (left, right, result) in enumerate(spatial):
        source, size = builder.operands[0][left], builder.operands[1][right]
        target = builder.results[0][result]
        if min(source, size, target) < 0:
            continue
        window = Window(
            source, target, size, strides[s], *padding[s], base[s], dilations[s], bool(turned[s])
        )
        _space(op, builder, window, (at(0, left), at(1, right), out(result)))
    return builder.build(product_linearity(op))


def _features(op: Operation, builder: RuleBuilder, dims: ConvAttr) -> None:
    """Groups come first (they are major), then batch, output features and the input feature sum.

    A tile of the groups needs the group count divided as well: the rewrite "convolution_groups".
    """
    left, right = builder.operands
    image, feature = dims.input_batch_dimension, dims.input_feature_dimension
    kernel, made = dims.kernel_output_feature_dimension, dims.output_feature_dimension
    if min(left[image], left[feature], right[kernel]) < 0:
        return
    batches = integer(op, "batch_group_count", 1)
    groups = integer(op, "feature_group_count", 1)
    for count, place in ((groups, at(0, feature)), (batches, at(0, image))):
        builder.factor(count, place, at(1, kernel), out(made), rewrite="convolution_groups")
    builder.factor(left[image] // batches, at(0, image), out(dims.output_batch_dimension))
    builder.factor(right[kernel] // (groups * batches), at(1, kernel), out(made))
    builder.factor(
        left[feature] // groups,
        at(0, feature),
        at(1, dims.kernel_input_feature_dimension),
        kind=Kind.REDUCTION,
        reducer=contracting_reducer(op),
    )


def _space(
    op: Operation, builder: RuleBuilder, window: Window, places: tuple[Place, Place, Place]
) -> None:
    """One spatial dimension. Where windows lie apart and fill the source, or there is one window
    only, the taps of the kernel are contracted with what they lie on."""
    source, kernel, target = places
    if window.apart:
        builder.factor(window.target, source, target)
        if window.size == window.stride and not window.turned:
            _taps(op, builder, window, source, kernel)
        else:
            builder.factor(window.stride, source, kind=Kind.BLOCKED)
    elif window.total and not window.turned:
        _taps(op, builder, window, source, kernel)
    else:
        builder.join(source, target, kind=Kind.SPECIAL, rewrite="convolution")


def _taps(
    op: Operation, builder: RuleBuilder, window: Window, source: Place, kernel: Place
) -> None:
    builder.factor(
        window.size, source, kernel, kind=Kind.REDUCTION, reducer=contracting_reducer(op)
    )


RULES: dict[str, RuleFunction] = {"stablehlo.convolution": convolution}
