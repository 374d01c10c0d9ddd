"""Which parts of other tiles does a device need, and who sends them to whom?

An op that looks across the border of its tile (a slice, a pad, a window) reads, for tile t of its
result, `width` positions of an operand from `t * step + first` on. What of them lies in other tiles
comes by permutes. The pieces are a pure function of sizes, so that the plan, the cost and the
lowering all have the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from ..partir_dialect.rules.base import Dims, Kind, Rule
from ..partir_dialect.rules.properties import integers, numbers, pairs, required

Reads = tuple[int, int, int]
"""(step, first, width): tile t reads positions t * step + first … + width - 1."""


@dataclass(frozen=True, slots=True)
class Slide:
    """How positions of the result read those of one operand along one dimension.

    Position o of the result reads `size` positions, `dilation` apart, from `o * stride - low` on,
    in an operand of which the `source` elements lie `base` apart. A stride of -1 reads backwards.
    `tiled` says whether the operand is tiled along `dim` (a single element is not).
    """

    operand: int
    dim: int
    source: int
    target: int
    tiled: bool
    low: int = 0
    stride: int = 1
    size: int = 1
    dilation: int = 1
    base: int = 1

    def reads(self, tiles: int) -> Reads:
        """What each of `tiles` tiles reads, in positions of the operand."""
        tile = self.target // tiles
        if self.stride < 0:
            return -tile, self.source - tile, tile
        span = (tile - 1) * self.stride + (self.size - 1) * self.dilation
        first = ceil_div(-self.low, self.base)
        last = (span - self.low) // self.base
        return tile * self.stride // self.base, first, last - first + 1

    def gap(self, tiles: int) -> int:
        """How far before the first position that is read a tile's first window begins."""
        return self.reads(tiles)[1] * self.base + self.low

    def rest(self, tiles: int) -> int:
        """How far behind the last position that is read a tile's last window ends."""
        tile, width = self.target // tiles, self.reads(tiles)[2]
        span = (tile - 1) * self.stride + (self.size - 1) * self.dilation + 1
        return span - self.gap(tiles) - ((width - 1) * self.base + 1)

    def leaves(self, tiles: int) -> bool:
        """Whether some tile reads beyond the operand."""
        step, first, width = self.reads(tiles)
        starts = [t * step + first for t in (0, tiles - 1)]
        return min(starts) < 0 or max(starts) + width > self.source


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of each tile: `size` elements from `start` on, sent along `pairs` of (source tile,
    target tile); without pairs it is what a device has itself. `places[t]` is where it lies in what
    tile t reads (None: t does not need it)."""

    start: int
    size: int
    pairs: tuple[tuple[int, int], ...]
    places: tuple[int | None, ...]


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def pieces(slide: Slide, tiles: int) -> tuple[Piece, ...]:
    """What each tile of the result is made of; the device's own part first, if any needs it."""
    step, first, width = slide.reads(tiles)
    size = slide.source // tiles if slide.tiled else slide.source
    needs: dict[tuple[int, int], tuple[int, int]] = {}
    for t in range(tiles):
        low = max(t * step + first, 0)
        high = min(t * step + first + width, slide.source)
        for s in range(low // size, ceil_div(high, size)) if low < high else ():
            source = s if slide.tiled else t
            needs[source, t] = (max(low - s * size, 0), min(high - s * size, size))
    rounds = [[edge for edge in needs if edge[0] == edge[1]]]
    rounds += _rounds([edge for edge in needs if edge[0] != edge[1]], step == size)
    found: list[Piece] = []
    for number, edges in enumerate(rounds):
        if not edges:
            continue
        start = min(needs[edge][0] for edge in edges)
        stop = max(needs[edge][1] for edge in edges)
        places: list[int | None] = [None] * tiles
        for s, t in edges:
            begin = s * size if slide.tiled else 0
            places[t] = begin + start - (t * step + first)
        sent = tuple(edges) if number else ()
        found.append(Piece(start, stop - start, sent, tuple(places)))
    return tuple(found)


def _rounds(edges: list[tuple[int, int]], regular: bool) -> list[list[tuple[int, int]]]:
    """Rounds in which every tile sends and receives at most once: by distance where that is the
    same for all, else as early as possible."""
    if regular:
        by_distance: dict[int, list[tuple[int, int]]] = {}
        for s, t in edges:
            by_distance.setdefault(s - t, []).append((s, t))
        return [by_distance[distance] for distance in sorted(by_distance)]
    rounds: list[list[tuple[int, int]]] = []
    for s, t in edges:
        for round_ in rounds:
            if all(s != other and t != target for other, target in round_):
                round_.append((s, t))
                break
        else:
            rounds.append([(s, t)])
    return rounds


# --- what an op reads ---------------------------------------------------------------------------


def slides_of(op: Operation, rule: Rule) -> tuple[tuple[int, tuple[Slide, ...]], ...]:
    """(factor, its slides) for each special factor of the op that is tiled by exchanging pieces;
    those for which the pieces would differ in form from tile to tile are left out."""
    make = _SLIDES.get(op.name)
    if make is None:
        return ()
    found: list[tuple[int, tuple[Slide, ...]]] = []
    for f, factor in enumerate(rule.factors):
        if factor.kind is not Kind.SPECIAL or factor.reducer is not None:
            continue
        dims = [d for d, made_of in enumerate(rule.results[0]) if made_of == (f,)]
        if len(dims) == 1:
            slides = make(op, rule, f, dims[0])
            if all(_is_regular(slide, factor.size) for slide in slides):
                found.append((f, slides))
    return tuple(found)


def _is_regular(slide: Slide, size: int) -> bool:
    """Whether windows begin alike in all tiles, in whatever number of tiles `size` is cut, and each
    tile reads something (windows may see nothing but the holes of a dilation)."""
    alike = slide.target // size * slide.stride % slide.base == 0
    return alike and slide.reads(size)[2] > 0


def _sizes(op: Operation, operand: int, source_dim: int, dim: int) -> tuple[int, int]:
    source: Any = op.operands[operand].type
    target: Any = op.results[0].type
    return source.get_shape()[source_dim], target.get_shape()[dim]


def _tiled(dims: Dims, dim: int, factor: int) -> bool:
    return dims[dim] == (factor,)


def _plain(op: Operation, rule: Rule, f: int, dim: int, **how: int) -> tuple[Slide, ...]:
    source, target = _sizes(op, 0, dim, dim)
    return (Slide(0, dim, source, target, _tiled(rule.operands[0], dim, f), **how),)


def _slice(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    strides = integers(op, "strides")
    start = required(op, "start_indices")[dim]
    return _plain(op, rule, f, dim, low=-start, stride=strides[dim] if strides else 1)


def _reverse(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    return _plain(op, rule, f, dim, stride=-1)


def _pad(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    interior = integers(op, "interior_padding")
    low = required(op, "edge_padding_low")[dim]
    return _plain(op, rule, f, dim, low=low, base=(interior[dim] if interior else 0) + 1)


def _concatenate(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    found: list[Slide] = []
    offset = 0
    for k in range(len(op.operands)):
        source, target = _sizes(op, k, dim, dim)
        tiled = _tiled(rule.operands[k], dim, f)
        found.append(Slide(k, dim, source, target, tiled, low=offset))
        offset += source
    return tuple(found)


def _reduce_window(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    rank = len(rule.results[0])
    ones = (1,) * rank
    found: list[Slide] = []
    for k in range(len(op.operands) // 2):
        source, target = _sizes(op, k, dim, dim)
        found.append(
            Slide(
                k,
                dim,
                source,
                target,
                _tiled(rule.operands[k], dim, f),
                pairs(op, "padding", rank)[dim][0],
                (integers(op, "window_strides") or ones)[dim],
                required(op, "window_dimensions")[dim],
                (integers(op, "window_dilations") or ones)[dim],
                (integers(op, "base_dilations") or ones)[dim],
            )
        )
    return tuple(found)


def _convolution(op: Operation, rule: Rule, f: int, dim: int) -> tuple[Slide, ...]:
    dims = numbers(op, "dimension_numbers")
    s = tuple(dims.output_spatial_dimensions).index(dim)
    place = dims.input_spatial_dimensions[s]
    rank = len(dims.input_spatial_dimensions)
    ones = (1,) * rank
    source, target = _sizes(op, 0, place, dim)
    kernel: Any = op.operands[1].type
    slide = Slide(
        0,
        place,
        source,
        target,
        _tiled(rule.operands[0], place, f),
        pairs(op, "padding", rank)[s][0],
        (integers(op, "window_strides") or ones)[s],
        kernel.get_shape()[dims.kernel_spatial_dimensions[s]],
        (integers(op, "rhs_dilation") or ones)[s],
        (integers(op, "lhs_dilation") or ones)[s],
    )
    return (slide,)


_SLIDES: dict[str, Callable[[Operation, Rule, int, int], tuple[Slide, ...]]] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
}
