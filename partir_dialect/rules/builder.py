"""How is a rule written down? Factor by factor, each with the dimensions in which it occurs.

What a rule function does not mention is blocked: every dimension of more than one element that is
left bare gets a BLOCKED factor of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ..quant import QuantizedType
from .base import Dims, Factor, Kind, Linearity, Rule

Shape = tuple[int, ...]


class Place(NamedTuple):
    """A dimension of an operand or a result."""

    is_result: bool
    value: int
    dim: int


def at(operand: int, dim: int) -> Place:
    """Dimension `dim` of operand number `operand`."""
    return Place(False, operand, dim)


def out(dim: int, result: int = 0) -> Place:
    """Dimension `dim` of result number `result`."""
    return Place(True, result, dim)


def shape_of(type_: Attribute) -> Shape:
    """The sizes of a tensor type (negative: unknown); () for tokens, tuples, unranked tensors."""
    if isinstance(type_, TensorType):
        return cast("TensorType[Attribute]", type_).get_shape()
    return ()


def is_quantised(type_: Attribute) -> bool:
    """Whether the elements are quantised: sums of such numbers round and saturate."""
    return isinstance(type_, TensorType) and isinstance(
        cast("TensorType[Attribute]", type_).element_type, QuantizedType
    )


def has_own_scales(type_: Attribute) -> bool:
    """Whether a quantised type has scales along a dimension, so that a tile has another type."""
    return is_quantised(type_) and "{" in str(cast("Any", type_).element_type.data)


class RuleBuilder:
    """Collects the factors of one op.

    Factors of one dimension are given major to minor. Dimensions of one element have no factor; a
    dimension of unknown size has none either, and blocks those that would share one with it. So
    does a value with scales along a dimension; and quantised numbers are not summed in parts.
    """

    __slots__ = ("_dims", "_factors", "_quantised", "_whole", "operands", "results")

    def __init__(self, op: Operation) -> None:
        self.operands: list[Shape] = [shape_of(value.type) for value in op.operands]
        self.results: list[Shape] = [shape_of(value.type) for value in op.results]
        types = ([v.type for v in op.operands], [v.type for v in op.results])
        self._quantised = any(is_quantised(type_) for side in types for type_ in side)
        self._whole: set[tuple[bool, int]] = set()
        if self._quantised:
            for is_result, side in zip((False, True), types, strict=True):
                self._whole |= {(is_result, k) for k, t in enumerate(side) if has_own_scales(t)}
        self._factors: list[Factor] = []
        self._dims: tuple[list[list[tuple[int, ...]]], list[list[tuple[int, ...]]]] = (
            [[()] * len(shape) for shape in self.operands],
            [[()] * len(shape) for shape in self.results],
        )

    def size(self, place: Place) -> int:
        """The number of elements of a dimension."""
        shapes = self.results if place.is_result else self.operands
        return shapes[place.value][place.dim]

    def factor(
        self,
        size: int,
        *places: Place,
        kind: Kind = Kind.PARALLEL,
        reducer: str | None = None,
        rewrite: str | None = None,
    ) -> None:
        """Appends a factor of that size, as the most minor so far, to each of the dimensions."""
        if size <= 1:
            return
        number = len(self._factors)
        if self._quantised and self._cannot_tile(reducer, places):
            kind, reducer, rewrite = Kind.BLOCKED, None, None
        self._factors.append(Factor(size, kind, reducer, rewrite))
        for is_result, value, dim in places:
            dims = self._dims[is_result][value]
            dims[dim] = (*dims[dim], number)

    def _cannot_tile(self, reducer: str | None, places: tuple[Place, ...]) -> bool:
        return reducer is not None or any(place[:2] in self._whole for place in places)

    def join(
        self,
        *places: Place,
        kind: Kind = Kind.PARALLEL,
        reducer: str | None = None,
        rewrite: str | None = None,
    ) -> None:
        """One factor that takes all these dimensions whole; those of one element are left out.

        Only a SPECIAL factor may join dimensions of different sizes.
        """
        sizes = [self.size(place) for place in places]
        if min(sizes) < 0 or (self._quantised and self._cannot_tile(reducer, places)):
            return
        size = max(sizes)
        if size <= 1:
            return
        if min(sizes) != size:
            wide = [place for place, n in zip(places, sizes, strict=True) if n > 1]
            if kind is Kind.SPECIAL:
                size = gcd(*(n for n in sizes if n > 1))
                whole = reducer is None and not any(place.is_result for place in wide)
                if size == 1 or whole:  # no even tile, or no tile of any result
                    return
            assert kind is Kind.SPECIAL or all(n in (1, size) for n in sizes), (places, sizes)
            places = tuple(wide)
        self.factor(size, *places, kind=kind, reducer=reducer, rewrite=rewrite)

    def build(self, linear: Iterable[Linearity] = ()) -> Rule:
        """The rule; dimensions without a factor become blocked."""
        for is_result, shapes in ((False, self.operands), (True, self.results)):
            for index, shape in enumerate(shapes):
                made = self._dims[is_result][index]
                for dim, size in enumerate(shape):
                    if size > 1 and not made[dim]:
                        self.factor(size, Place(is_result, index, dim), kind=Kind.BLOCKED)
        return Rule(
            tuple(self._factors),
            _frozen(self._dims[False]),
            _frozen(self._dims[True]),
            () if self._quantised else tuple(linear),
        )


def _frozen(dims: list[list[tuple[int, ...]]]) -> tuple[Dims, ...]:
    return tuple(tuple(made) for made in dims)


def blocked(op: Operation) -> Rule:
    """The rule of an op of which nothing is known: every dimension must be gathered."""
    return RuleBuilder(op).build()
