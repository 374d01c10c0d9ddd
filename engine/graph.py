"""What is in the module: ops, factors and incidence as plain lists, built once, with no xDSL
object.

The graph is immutable; the state (nests) lives in `state.py`. Arguments and results of `main` are
identity ops at the border: arguments come first in the op list, results last. An argument and the
result that aliases it share one *slot*, and so one nest (DESIGN, section 4, rule 4). Ops with
control flow are opaque: what their regions capture counts as operands, whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..partir_dialect.constants import Dense, is_splat
from ..partir_dialect.dtypes import element_bytes, type_text
from ..partir_dialect.errors import PartirError
from ..partir_dialect.names import argument_names, location_text, result_names
from ..partir_dialect.partir import ReplicateOp, StopOp
from ..partir_dialect.rules import rule_of
from ..partir_dialect.rules.base import Dims, Factor, Kind, Rule
from .local import LOCAL_OPS, REWRITES

ARGUMENT = "partir.argument"
RESULT = "partir.result"

_TRANSPARENT = frozenset(
    {
        "stablehlo.convert",
        "stablehlo.transpose",
        "stablehlo.reshape",
        "stablehlo.reduce_precision",
        "stablehlo.optimization_barrier",
        "stablehlo.bitcast_convert",
        "partir.stop",
        "partir.replicate",
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
    an axis may tile along f at all.
    """

    factors: tuple[Factor, ...]
    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]
    where_in: tuple[tuple[tuple[int, int], ...], ...]
    where_out: tuple[tuple[tuple[int, int], ...], ...]
    usable: tuple[bool, ...]
    rule: Rule


@dataclass
class Graph:
    """The module as arrays. Op indices are in program order; value ids are dense."""

    kinds: list[str] = field(default_factory=list[str])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    results: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    op_shapes: list[OpShape] = field(default_factory=list[OpShape])
    locations: list[str] = field(default_factory=list[str])
    slots: list[int] = field(default_factory=list[int])
    slot_ops: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

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

    arguments: list[Argument] = field(default_factory=list[Argument])
    outcomes: list[Result] = field(default_factory=list[Result])

    @property
    def rules(self) -> list[Rule]:
        """The rule of each op."""
        return [shape.rule for shape in self.op_shapes]

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


def main_of(module: ModuleOp) -> FuncOp:
    """The function `main` (or the only public one) of the module."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == "main":
            return function
    public = [f for f in functions if f.sym_visibility is None or f.sym_visibility.data == "public"]
    if len(public) == 1:
        return public[0]
    raise PartirError(
        f"the module has no function @main, only: {[f.sym_name.data for f in functions]}"
    )


def compile_rule(kind: str, rule: Rule, captured: tuple[tuple[int, ...], ...] = ()) -> OpShape:
    """The rule as the sweeps want it; dimensions of captured values are blocked."""
    factors = list(rule.factors)
    inputs = list(rule.operands)
    for shape in captured:
        dims: list[tuple[int, ...]] = []
        for size in shape:
            dims.append((len(factors),))
            factors.append(Factor(size, Kind.BLOCKED))
        inputs.append(tuple(dims))
    where_in = _occurrences(len(factors), inputs)
    where_out = _occurrences(len(factors), rule.results)
    return OpShape(
        tuple(factors),
        tuple(inputs),
        rule.results,
        where_in,
        where_out,
        tuple(_usable(kind, factor, where_in[f], where_out[f]) for f, factor in enumerate(factors)),
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


def _usable(
    kind: str,
    factor: Factor,
    where_in: tuple[tuple[int, int], ...],
    where_out: tuple[tuple[int, int], ...],
) -> bool:
    if kind not in LOCAL_OPS or factor.kind is Kind.BLOCKED or factor.size <= 1:
        return False
    if factor.rewrite is not None and factor.rewrite not in REWRITES:
        return False
    if factor.kind is Kind.SPECIAL and factor.rewrite is None:
        return False
    for where in (where_in, where_out):  # twice in one value cannot be a tile
        if len({k for k, _ in where}) != len(where):
            return False
    return factor.kind is not Kind.REDUCTION or not where_out


def _identity_rule(shape: tuple[int, ...], *, source: bool) -> Rule:
    dims: Dims = tuple((d,) for d in range(len(shape)))
    factors = tuple(Factor(size) for size in shape)
    return Rule(factors, () if source else (dims,), (dims,) if source else ())


def _blocked_rule(
    op: Operation, shapes_in: list[tuple[int, ...]], shapes_out: list[tuple[int, ...]]
) -> Rule:
    factors: list[Factor] = []

    def dims_of(shape: tuple[int, ...]) -> Dims:
        start = len(factors)
        factors.extend(Factor(size, Kind.BLOCKED) for size in shape)
        return tuple((start + d,) for d in range(len(shape)))

    operands = tuple(dims_of(shape) for shape in shapes_in)
    results = tuple(dims_of(shape) for shape in shapes_out)
    return Rule(tuple(factors), operands, results)


class _Builder:
    """Walks main once and fills a `Graph`; keeps the value ids of SSA values while it does."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.ids: dict[SSAValue, int] = {}
        self.compiled: dict[tuple[str, int, tuple[tuple[int, ...], ...]], OpShape] = {}
        self.kept_rules: list[Rule] = []

    def value(self, ssa: SSAValue, op: int, index: int) -> int:
        graph = self.graph
        number = len(graph.shapes)
        self.ids[ssa] = number
        shape, dtype, itemsize = tensor_facts(ssa.type)
        graph.shapes.append(shape)
        graph.dtypes.append(dtype)
        graph.itemsizes.append(itemsize)
        graph.producer.append((op, index))
        graph.uses.append([])
        return number

    def op(
        self,
        kind: str,
        rule: Rule,
        operands: tuple[int, ...],
        results: tuple[SSAValue, ...],
        location: str,
    ) -> int:
        graph = self.graph
        number = len(graph.kinds)
        graph.kinds.append(kind)
        graph.operands.append(operands)
        for k, operand in enumerate(operands):
            graph.uses[operand].append((number, k))
        graph.results.append(tuple(self.value(ssa, number, r) for r, ssa in enumerate(results)))
        captured = tuple(graph.shapes[v] for v in operands[len(rule.operands) :])
        key = (kind, id(rule), captured)
        compiled = self.compiled.get(key)
        if compiled is None:
            self.kept_rules.append(rule)  # ids stay unique while the rule lives
            compiled = self.compiled[key] = compile_rule(kind, rule, captured)
        graph.op_shapes.append(compiled)
        graph.locations.append(location)
        self._static_facts(number)
        return number

    def _static_facts(self, op: int) -> None:
        """Rule 2: which dimensions no argument was sliced to make; and what derives from arguments
        alone by ops that only change shape or type."""
        graph = self.graph
        shape = graph.op_shapes[op]
        operands = graph.operands[op]
        opaque = graph.kinds[op] not in LOCAL_OPS
        for r, result in enumerate(graph.results[op]):
            flags = tuple(
                graph.kinds[op] != ARGUMENT
                and not opaque
                and all(
                    graph.generated[operands[k]][d2] for f in made_of for k, d2 in shape.where_in[f]
                )
                for made_of in (shape.outputs[r] if r < len(shape.outputs) else ())
            )
            graph.generated.append(flags)
            graph.derived.append(
                graph.kinds[op] == ARGUMENT
                or (
                    graph.kinds[op] in _TRANSPARENT
                    and len(operands) == 1
                    and graph.derived[operands[0]]
                )
            )
            assert len(graph.generated) == result + 1


def tensor_facts(type_: Attribute) -> tuple[tuple[int, ...], str, float]:
    """(shape, element type text, bytes an element) of a value; tokens and tuples have no shape."""
    if isinstance(type_, TensorType):
        tensor = cast("TensorType[Attribute]", type_)
        return (
            tensor.get_shape(),
            type_text(tensor.element_type),
            element_bytes(tensor.element_type),
        )
    return (), str(type_), 0.0


def _captured(op: Operation) -> list[SSAValue]:
    """Values defined outside `op` that its regions use, in order of first use."""
    inside: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    inner = [op_ for region in op.regions for op_ in region.walk()]
    for region in (*op.regions, *(r for op_ in inner for r in op_.regions)):
        for block in region.blocks:
            inside.update(block.args)
    for op_ in inner:
        inside.update(op_.results)
    for op_ in inner:
        found.update((operand, None) for operand in op_.operands if operand not in inside)
    return list(found)


def _rule_for(op: Operation, captured: list[SSAValue]) -> Rule:
    if isinstance(op, ReplicateOp | StopOp):
        shape = tensor_facts(op.source.type)[0]
        dims: Dims = tuple((d,) for d in range(len(shape)))
        return Rule(tuple(Factor(size) for size in shape), (dims,), (dims,))
    value = op.properties.get("value")
    table = (
        op.name == "stablehlo.constant"
        and isinstance(value, DenseIntOrFPElementsAttr)
        and not is_splat(cast("Dense", value))
    )
    if op.name not in LOCAL_OPS or captured or table:
        return _blocked_rule(
            op,
            [tensor_facts(v.type)[0] for v in op.operands],
            [tensor_facts(v.type)[0] for v in op.results],
        )
    return rule_of(op)


@dataclass(frozen=True)
class Source:
    """Where each op and value of a graph came from, for the lowering: the only bridge back to
    IR."""

    module: ModuleOp
    function: FuncOp
    ops: dict[int, Operation]
    values: dict[int, SSAValue]
    captured: dict[int, list[SSAValue]]


def build_graph(module: ModuleOp) -> Graph:
    """The arrays of a prepared module (one function main without calls). Seconds: linear in ops."""
    return build(module)[0]


def build(module: ModuleOp) -> tuple[Graph, Source]:
    """As `build_graph`, with the bridge back to the IR."""
    function = main_of(module)
    block = function.body.block
    builder = _Builder()
    graph = builder.graph
    source = Source(module, function, {}, {}, {})
    texts: dict[int, str] = {}

    def where(location: Attribute) -> str:  # by identity: equal texts are one attribute as read
        if id(location) not in texts:
            texts[id(location)] = location_text(location)
        return texts[id(location)]

    names = argument_names(function)
    for ssa, name in zip(block.args, names, strict=True):
        shape, _, _ = tensor_facts(ssa.type)
        op = builder.op(
            ARGUMENT, _identity_rule(shape, source=True), (), (ssa,), where(ssa.location)
        )
        graph.arguments.append(Argument(name, graph.results[op][0], op, None))
    terminator = None
    for op in block.ops:
        if isinstance(op, ReturnOp):
            terminator = op
            break
        captured = _captured(op) if op.regions else []
        operands = tuple(builder.ids[v] for v in (*op.operands, *captured))
        number = builder.op(
            op.name, _rule_for(op, captured), operands, tuple(op.results), where(op.location)
        )
        source.ops[number] = op
        if isinstance(op, ReplicateOp | StopOp):
            for axis in op.axis_names:
                graph.marks[operands[0], axis] = isinstance(op, ReplicateOp)
        if captured:
            source.captured[number] = captured
    assert terminator is not None, "main ends in func.return"
    for ssa, name in zip(terminator.operands, result_names(function), strict=True):
        value = builder.ids[ssa]
        rule = _identity_rule(graph.shapes[value], source=False)
        op = builder.op(RESULT, rule, (value,), (), where(terminator.location))
        graph.outcomes.append(Result(name, value, op, None))
    source.values.update({number: ssa for ssa, number in builder.ids.items()})
    graph.slots = list(range(len(graph.kinds)))
    graph.slot_ops = [(op,) for op in range(len(graph.kinds))]
    return graph, source


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
