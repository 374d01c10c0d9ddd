"""What does one loop over a factor do to an op's operands and results?

`form_of` answers from the rule alone, for both directions: `partir-loops` writes loops from it,
`partir-nests` finds the factor whose form a loop has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation

from ..partir_dialect.constants import dense_attribute, is_splat
from ..partir_dialect.partir_attributes import REDUCE_ACTIONS, Action, AnyAttr, TileAttr
from ..partir_dialect.rules.base import Dims, Kind, Rule

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What an iteration takes of a value: its slice along `dim`; with `embeds` that slice at its
    place among identity elements of a reducer; with `once` the value in the first iteration only.

    `partial` says that the value itself is a partial result of the iteration, to be combined by
    that reducer when the loop ends.
    """

    dim: int | None = None
    embeds: str | None = None
    once: str | None = None
    partial: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """One loop of an op's nest: a mark for each operand (None: taken whole), and for each result
    the action and, if every iteration makes it whole, the dimension that is cut from it."""

    operands: tuple[Mark | None, ...]
    cuts: tuple[int | None, ...]
    actions: tuple[Action, ...]

    @property
    def retypes(self) -> bool:
        """Whether the op itself becomes smaller: it works on slices and makes tiles."""
        embeds = any(mark is not None and mark.embeds is not None for mark in self.operands)
        return not embeds and all(cut is None for cut in self.cuts)


def _reducer_starts(op: Operation) -> range:
    """The operands that a reduction starts from, which partial results must count once."""
    if op.name == "stablehlo.scatter":
        return range((len(op.operands) - 1) // 2)
    return range(len(op.operands) // 2, len(op.operands))


def _dim_of(dims: Dims, factor: int) -> int | None:
    return next((d for d, made_of in enumerate(dims) if factor in made_of), None)


def _tiles(rule: Rule, factor: int) -> tuple[int | None, ...]:
    return tuple(_dim_of(dims, factor) for dims in rule.results)


def _actions(rule: Rule, factor: int, reducer: str | None) -> tuple[Action, ...]:
    missing: Action = REDUCE_ACTIONS[reducer]() if reducer else AnyAttr()
    return tuple(missing if d is None else TileAttr(d) for d in _tiles(rule, factor))


def _sliced(rule: Rule, factor: int) -> list[Mark | None]:
    dims = [_dim_of(dims, factor) for dims in rule.operands]
    return [None if d is None else Mark(dim=d) for d in dims]


def _tile_form(op: Operation, rule: Rule, factor: int) -> Form:
    """Operands are sliced, the op is retyped."""
    info = rule.factors[factor]
    operands = _sliced(rule, factor)
    if info.rewrite == "init_once":
        for k in _reducer_starts(op):
            operands[k] = Mark(once=info.reducer)
    return Form(tuple(operands), (None,) * len(rule.results), _actions(rule, factor, info.reducer))


def _cut_form(rule: Rule, factor: int) -> Form:
    """Every iteration makes all of the results and keeps its tile of them."""
    whole = (None,) * len(rule.operands)
    return Form(whole, _tiles(rule, factor), _actions(rule, factor, None))


def _embed_form(op: Operation, rule: Rule, factor: int) -> Form:
    """Operands are slices embedded in the whole, and the results are partial."""
    reducer = rule.factors[factor].reducer
    marks = [
        Mark(dim=mark.dim, embeds=reducer) if mark is not None and mark.dim is not None else mark
        for mark in _tile_form(op, rule, factor).operands
    ]
    whole = (None,) * len(rule.results)
    return Form(tuple(marks), whole, _actions(rule, factor, reducer))


def _in_all_results(op: Operation, rule: Rule, factor: int) -> bool:
    """Whether tiling the factor tiles every result that sees it (a barrier's are apart)."""
    barrier = op.name == "stablehlo.optimization_barrier"
    return barrier or all(d is not None for d in _tiles(rule, factor))


def forms_of(op: Operation, rule: Rule, factor: int) -> tuple[Form, ...]:
    """The forms a loop along that factor may have, the usual one first; none if it is blocked."""
    info = rule.factors[factor]
    if info.kind is Kind.BLOCKED or (info.kind is Kind.SPECIAL and info.rewrite is None):
        return ()
    retypes = info.kind is not Kind.SPECIAL and info.rewrite in (None, "init_once")
    if all(d is None for d in _tiles(rule, factor)):
        if info.reducer is None:
            return ()
        embed = _embed_form(op, rule, factor)
        return (_tile_form(op, rule, factor), embed) if retypes else (embed,)
    if retypes and _in_all_results(op, rule, factor):
        return (_tile_form(op, rule, factor), _cut_form(rule, factor))
    return (_cut_form(rule, factor),)


_ZERO_IDENTITY = (None, "add", "or")


class Rests:
    """How much of each factor one iteration has left, as loops are entered from the outside in."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._values = (*rule.operands, *rule.results)
        self._sizes = [factor.size for factor in rule.factors]

    def allow(self, form: Form, factor: int, size: int) -> bool:
        """Whether `size` tiles of the factor are slices in each dimension that is sliced or cut:
        what is major to it is one element by now, and nothing is minor to it unless the tiles
        divide it. The padding of an uneven slice is zero: only sums may have it."""
        reducer = self._rule.factors[factor].reducer
        if form.retypes and reducer not in _ZERO_IDENTITY and self._sizes[factor] % size:
            return False
        values = self._rule.results if any(c is not None for c in form.cuts) else self._values
        return all(
            self._is_slice(made_of, factor, size)
            for dims in values
            for made_of in dims
            if factor in made_of
        )

    def _is_slice(self, made_of: tuple[int, ...], factor: int, size: int) -> bool:
        place = made_of.index(factor)
        if any(self._sizes[major] > 1 for major in made_of[:place]):
            return False
        minor = prod(self._sizes[f] for f in made_of[place + 1 :])
        return minor == 1 or self._sizes[factor] % size == 0

    def take(self, form: Form, factor: int, size: int) -> None:
        """Enters a loop of `size` iterations along the factor."""
        if form.retypes:
            self._sizes[factor] = -(-self._sizes[factor] // size)


def choose_form(op: Operation, rule: Rule, factor: int, rests: Rests, size: int) -> Form | None:
    """The form of the loop over `size` tiles of the factor; None if it cannot be written."""
    forms = forms_of(op, rule, factor)
    return next((form for form in forms if rests.allow(form, factor, size)), None)


# --- attributes that hold sizes -------------------------------------------------------------------


def _values(op: Operation, name: str) -> list[int]:
    array = op.properties.get(name)
    if not isinstance(array, DenseArrayBase):
        return []
    return [int(value) for value in array.get_values()]


def _shape(type_: Attribute) -> Shape:
    return type_.get_shape() if isinstance(type_, TensorType) else ()


def _array(values: list[int]) -> Attribute:
    array: Attribute = DenseArrayBase.from_list(i64, values)
    return array


def _retype_slice(op: Operation, operand: Shape, result: Attribute) -> dict[str, Attribute]:
    starts, limits = _values(op, "start_indices"), _values(op, "limit_indices")
    strides = _values(op, "strides") or [1] * len(starts)
    old = _shape(op.operands[0].type)
    for d, size in enumerate(old):
        if (starts[d], limits[d], strides[d]) == (0, size, 1):
            limits[d] = operand[d]
    return {"limit_indices": _array(limits)}


def _retype_sizes(op: Operation, operand: Shape, result: Attribute) -> dict[str, Attribute]:
    sizes, old = _values(op, "slice_sizes"), _shape(op.operands[0].type)
    numbers: Any = op.properties.get("dimension_numbers")
    batch = set(numbers.operand_batching_dims) if numbers is not None else set[int]()
    taken = [
        new if size == old[d] and d not in batch else size
        for d, (size, new) in enumerate(zip(sizes, operand, strict=True))
    ]
    return {"slice_sizes": _array(taken)}


def _retype_broadcast(op: Operation, operand: Shape, result: Attribute) -> dict[str, Attribute]:
    shape = _shape(result)
    return {"broadcast_sizes": _array(list(shape[: len(shape) - len(operand)]))}


def _retype_constant(op: Operation, operand: Shape, result: Attribute) -> dict[str, Attribute]:
    value = op.properties.get("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return {}
    dense = cast("DenseIntOrFPElementsAttr[Any]", value)
    return {"value": dense_attribute(result, dense.data.data)} if is_splat(dense) else {}


_RETYPE: dict[str, Callable[[Operation, Shape, Attribute], dict[str, Attribute]]] = {
    "chlo.constant": _retype_constant,
    "sdy.constant": _retype_constant,
    "stablehlo.broadcast": _retype_broadcast,
    "stablehlo.constant": _retype_constant,
    "stablehlo.dynamic_slice": _retype_sizes,
    "stablehlo.gather": _retype_sizes,
    "stablehlo.slice": _retype_slice,
}


def retyped_properties(
    op: Operation, operand_types: list[Attribute], result_types: list[Attribute]
) -> dict[str, Attribute]:
    """The properties of `op` on other types, in which a dimension that was taken whole still is."""
    retype = _RETYPE.get(op.name)
    if retype is None:
        return dict(op.properties)
    operand = _shape(operand_types[0]) if operand_types else ()
    if operand_types and len(operand) != len(_shape(op.operands[0].type)):
        return dict(op.properties)
    return dict(op.properties) | retype(op, operand, result_types[0])
