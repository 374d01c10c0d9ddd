"""What is in the module: ops, factors and incidence as plain lists, built once, with no xDSL
object.

The graph is immutable; the state (nests) lives in `state.py`. Arguments and results of `main` are
identity ops at the border: arguments come first in the op list, results last. An argument and the
result that aliases it share one *slot*, and so one nest (DESIGN, section 4, rule 4); so do the ops
of a loop carry: what enters (the init, and the arguments that it becomes), what the body yields,
and what comes out. Regions are flattened into the op list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ..partir_dialect.errors import PartirError
from ..partir_dialect.rules.base import Dims, Factor, Kind, Rule
from .exchange import Slide
from .local import ALONE, EXCHANGED, LOCAL_OPS, MASKED, REWRITES, UNEVEN

ARGUMENT = "partir.argument"
RESULT = "partir.result"

ENTER = "partir.enter"
YIELD = "partir.yield"
EXIT = "partir.exit"
PREDICATE = "partir.predicate"
CARRY_KINDS = frozenset({ENTER, YIELD, EXIT})
"""The ops of one loop carry, or of one result of a `case` or `if`: they share a slot."""

TRANSPARENT = frozenset(
    {
        "stablehlo.convert",
        "stablehlo.transpose",
        "stablehlo.reshape",
        "stablehlo.reduce_precision",
        "stablehlo.optimization_barrier",
        "stablehlo.bitcast_convert",
        "partir.stop",
        "partir.replicate",
        "sdy.sharding_constraint",
    }
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of main: flat name, value, op, and the index of the result that aliases it."""

    name: str
    value: int
    op: int
    alias: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """One result of main: flat name, value, op, and the index of the argument it aliases."""

    name: str
    value: int
    op: int
    alias: int | None


@dataclass(frozen=True, slots=True)
class OpShape:
    """The factor table of one op kind instance, compiled for the sweeps; shared by equal ops.

    `inputs[k][d]` and `outputs[r][d]` are factors major to minor; `where_in[f]` and `where_out[f]`
    are the (operand or result, dimension) pairs in which factor f occurs; `usable[f]` says whether
    an axis may tile along f at all, `padable[f]` whether its tiles may be uneven, `partial[f]`
    whether tiles of it leave partial results, `slides[f]` what its tiles read of the operands'
    tiles (empty: their own), and `alone[f]` whether no other such factor may be tiled beside it.
    """

    factors: tuple[Factor, ...]
    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]
    where_in: tuple[tuple[tuple[int, int], ...], ...]
    where_out: tuple[tuple[tuple[int, int], ...], ...]
    usable: tuple[bool, ...]
    padable: tuple[bool, ...]
    partial: tuple[bool, ...]
    alone: tuple[bool, ...]
    slides: tuple[tuple[Slide, ...], ...]
    rule: Rule


@dataclass(frozen=True, slots=True)
class Region:
    """A region of control flow: the region around it (0 is main), and how often it runs for each
    run of main, when that is known."""

    parent: int
    trips: int | None


AxisNames = tuple[tuple[tuple[str, ...], ...], ...]
"""For each value and dimension the names of the mesh axes that cut it, major to minor."""

Sweep = list["int | Sweep"]
"""Slots in forward order; a nested list is one control-flow op, with what its regions hold."""


@dataclass
class Graph:
    """The module as arrays. Op indices are in program order; value ids are dense.

    `region_of[o]` is the region an op is in and `regions` the table of regions; `order` has the
    slots in forward order, nested by control flow.
    """

    kinds: list[str] = field(default_factory=list[str])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    results: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    op_shapes: list[OpShape] = field(default_factory=list[OpShape])
    locations: list[str] = field(default_factory=list[str])
    slots: list[int] = field(default_factory=list[int])
    slot_ops: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    region_of: list[int] = field(default_factory=list[int])
    regions: list[Region] = field(default_factory=lambda: [Region(0, 1)])
    order: Sweep = field(default_factory=list["int | Sweep"])

    shapes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    dtypes: list[str] = field(default_factory=list[str])
    itemsizes: list[float] = field(default_factory=list[float])
    producer: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    uses: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    generated: list[tuple[bool, ...]] = field(default_factory=list[tuple[bool, ...]])
    derived: list[bool] = field(default_factory=list[bool])

    marks: dict[tuple[int, str], bool] = field(default_factory=dict[tuple[int, str], bool])
    """(value, axis name) that a `partir.stop` (False) or `partir.replicate` (True) in the IR is
    on."""

    given: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    """Slots of which the program itself says the placement: the order of their axes is kept, and
    no further axis tiles these (closed) factors."""
    reserved: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    """Axes, by name, that no propagation may put on a slot: the program puts them there later."""
    manual: dict[int, tuple[AxisNames, AxisNames]] = field(
        default_factory=dict[int, "tuple[AxisNames, AxisNames]"]
    )
    """Ops that are device-local already: by mesh axis how they want their operands cut, and how
    their results are."""

    arguments: list[Argument] = field(default_factory=list[Argument])
    outcomes: list[Result] = field(default_factory=list[Result])

    @property
    def rules(self) -> list[Rule]:
        """The rule of each op."""
        return [shape.rule for shape in self.op_shapes]

    def trips(self, op: int) -> int:
        """How often an op runs for each run of main; loops of unknown length count once."""
        return self.regions[self.region_of[op]].trips or 1

    def is_inside(self, region: int, other: int) -> bool:
        """Whether a region is `other` or lies in it."""
        while region != other:
            if region == 0:
                return False
            region = self.regions[region].parent
        return True

    def bytes_of(self, value: int) -> int:
        """Bytes of the whole value (sub-byte types are packed)."""
        return -int(-prod(self.shapes[value]) * self.itemsizes[value] // 1)

    def argument(self, name: str) -> Argument:
        """The argument of that flat name."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise PartirError(
            f"no such argument: {name!r}",
            name=name,
            candidates=[argument.name for argument in self.arguments],
        )


Slides = tuple[tuple[int, tuple[Slide, ...]], ...]
"""The factors of an op that are tiled by exchanging pieces, and what their tiles read."""


def compile_rule(
    kind: str,
    rule: Rule,
    captured: tuple[tuple[int, ...], ...] = (),
    slides: Slides = (),
) -> OpShape:
    """The rule as the sweeps want it; dimensions of captured values are blocked."""
    factors = list(rule.factors)
    exchanged = dict(slides)
    inputs = list(rule.operands)
    for shape in captured:
        dims: list[tuple[int, ...]] = []
        for size in shape:
            dims.append((len(factors),))
            factors.append(Factor(size, Kind.BLOCKED))
        inputs.append(tuple(dims))
    tables = (*inputs, *rule.results)
    products = {f for dims in tables for made_of in dims if len(made_of) > 1 for f in made_of}
    where_in = _occurrences(len(factors), inputs)
    where_out = _occurrences(len(factors), rule.results)
    return OpShape(
        tuple(factors),
        tuple(inputs),
        rule.results,
        where_in,
        where_out,
        tuple(
            _usable(kind, factor, where_in[f], where_out[f])
            and (f in exchanged or not _is_exchanged(factor))
            for f, factor in enumerate(factors)
        ),
        tuple(_padable(kind, factor) and f not in products for f, factor in enumerate(factors)),
        tuple(_is_partial(factor) for factor in factors),
        tuple(factor.rewrite in ALONE or _is_exchanged(factor) for factor in factors),
        tuple(exchanged.get(f, ()) for f in range(len(factors))),
        rule,
    )


def _occurrences(
    count: int, table: list[Dims] | tuple[Dims, ...]
) -> tuple[tuple[tuple[int, int], ...], ...]:
    where: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for k, dims in enumerate(table):
        for d, made_of in enumerate(dims):
            for f in made_of:
                where[f].append((k, d))
    return tuple(tuple(places) for places in where)


def _padable(kind: str, factor: Factor) -> bool:
    """Whether padding at the tail of the factor can do no harm, or is masked."""
    if factor.kind is Kind.REDUCTION:
        return kind in MASKED
    if factor.rewrite == "slice":
        return factor.reducer is not None
    return factor.kind is Kind.PARALLEL or factor.rewrite in UNEVEN


def _is_exchanged(factor: Factor) -> bool:
    return factor.rewrite in EXCHANGED and factor.reducer is None


def _is_partial(factor: Factor) -> bool:
    """Whether each tile of the factor gives a partial result: sums, and masked parts."""
    return factor.reducer is not None and factor.kind in (Kind.REDUCTION, Kind.SPECIAL)


def _usable(
    kind: str,
    factor: Factor,
    where_in: tuple[tuple[int, int], ...],
    where_out: tuple[tuple[int, int], ...],
) -> bool:
    local = kind in LOCAL_OPS or kind in CARRY_KINDS
    if not local or factor.kind is Kind.BLOCKED or factor.size <= 1:
        return False
    if factor.rewrite is not None and factor.rewrite not in REWRITES:
        return False
    if factor.kind is Kind.SPECIAL and factor.rewrite is None:
        return False
    for where in (where_in, where_out):  # twice in one value cannot be a tile
        if len({k for k, _ in where}) != len(where):
            return False
    return not _is_partial(factor) or not where_out


def pair(graph: Graph, pairs: dict[int, int]) -> None:
    """Makes each (argument index -> result index) one op with one nest (rule 4)."""
    for a, r in pairs.items():
        argument, result = graph.arguments[a], graph.outcomes[r]
        assert graph.shapes[argument.value] == graph.shapes[result.value], (argument, result)
        graph.arguments[a] = Argument(argument.name, argument.value, argument.op, r)
        graph.outcomes[r] = Result(result.name, result.value, result.op, a)
        graph.slots[result.op] = argument.op
        graph.slot_ops[argument.op] = (argument.op, result.op)
        graph.slot_ops[result.op] = ()
