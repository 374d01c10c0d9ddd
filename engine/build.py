"""How the arrays of a module come about: one walk over main, the only place that reads IR.

`while`, `case` and `if` are flattened: their regions' ops stand in the op list, and each carry (or
result) becomes three identity ops with one slot: `partir.enter` takes the init and makes the body's
and the condition's argument, `partir.yield` takes what the body yields, `partir.exit` makes the
result. Ops with other regions (reductions, sorts) are single ops; what their regions capture counts
as operands, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..partir_dialect.constants import Dense, is_splat, to_numpy
from ..partir_dialect.dtypes import element_bytes, type_text
from ..partir_dialect.errors import PartirError
from ..partir_dialect.names import argument_names, location_text, result_names
from ..partir_dialect.partir import ReplicateOp, StopOp
from ..partir_dialect.rules import rule_of
from ..partir_dialect.rules.base import Dims, Factor, Kind, Rule
from ..partir_dialect.sdy import ManualComputationOp, Sharding
from .exchange import slides_of
from .graph import (
    ARGUMENT,
    CARRY_KINDS,
    ENTER,
    EXIT,
    PREDICATE,
    RESULT,
    TRANSPARENT,
    YIELD,
    Argument,
    AxisNames,
    Graph,
    OpShape,
    Region,
    Result,
    Slides,
    Sweep,
    compile_rule,
)
from .local import LOCAL_OPS

WHILE = "stablehlo.while"
BRANCHES = frozenset({"stablehlo.case", "stablehlo.if"})

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a pseudo-op of control flow is in the IR: the op and the operand or result number."""

    op: Operation
    index: int


@dataclass(frozen=True)
class Source:
    """Where each op and value of a graph came from, for the lowering: the only bridge back to IR.

    `places` has the pseudo-ops of control flow, `blocks` the block of each region, `captured` what
    the regions of a single op capture.
    """

    module: ModuleOp
    function: FuncOp
    ops: dict[int, Operation] = field(default_factory=dict[int, Operation])
    values: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    captured: dict[int, list[SSAValue]] = field(default_factory=dict[int, list[SSAValue]])
    places: dict[int, Place] = field(default_factory=dict[int, Place])
    blocks: list[Block] = field(default_factory=list[Block])


def main_of(module: ModuleOp) -> FuncOp:
    """The function `main` (or the only public one) of the module."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == "main":
            return function
    public = [f for f in functions if f.sym_visibility is None or f.sym_visibility.data == "public"]
    if len(public) == 1:
        return public[0]
    names = [f.sym_name.data for f in functions]
    raise PartirError(f"the module has no function @main, only: {names}")


def build_graph(module: ModuleOp) -> Graph:
    """The arrays of a prepared module (one function main without calls). Linear in ops."""
    return build(module)[0]


def build(module: ModuleOp) -> tuple[Graph, Source]:
    """As `build_graph`, with the bridge back to the IR."""
    function = main_of(module)
    if len(function.body.blocks) != 1:
        raise PartirError(f"main must have one block, got: {len(function.body.blocks)}")
    builder = _Builder(Source(module, function))
    builder.main()
    return builder.graph, builder.source


def tensor_facts(type_: Attribute) -> tuple[Shape, str, float]:
    """(shape, element type text, bytes an element) of a value; tokens and tuples have no shape."""
    if isinstance(type_, TensorType):
        tensor = cast("TensorType[Attribute]", type_)
        element = tensor.element_type
        return tensor.get_shape(), type_text(element), element_bytes(element)
    return (), str(type_), 0.0


def identity_rule(shape: Shape, operands: int, results: int) -> Rule:
    """Factor d is dimension d, of every operand and every result."""
    dims: Dims = tuple((d,) for d in range(len(shape)))
    return Rule(tuple(Factor(size) for size in shape), (dims,) * operands, (dims,) * results)


def _blocked_rule(shapes_in: Sequence[Shape], shapes_out: Sequence[Shape]) -> Rule:
    factors: list[Factor] = []

    def dims_of(shape: Shape) -> Dims:
        start = len(factors)
        factors.extend(Factor(size, Kind.BLOCKED) for size in shape)
        return tuple((start + d,) for d in range(len(shape)))

    operands = tuple(dims_of(shape) for shape in shapes_in)
    results = tuple(dims_of(shape) for shape in shapes_out)
    return Rule(tuple(factors), operands, results)


def _rule_for(op: Operation, captured: list[SSAValue]) -> Rule:
    if isinstance(op, ReplicateOp | StopOp):
        return identity_rule(tensor_facts(op.source.type)[0], 1, 1)
    value = op.properties.get("value")
    table = (
        op.name == "stablehlo.constant"
        and isinstance(value, DenseIntOrFPElementsAttr)
        and not is_splat(cast("Dense", value))
    )
    sized = "indices_of_shape_operands" in op.attributes  # there operands hold global sizes
    if op.name not in LOCAL_OPS or captured or table or sized:
        return _blocked_rule(
            [tensor_facts(v.type)[0] for v in op.operands],
            [tensor_facts(v.type)[0] for v in op.results],
        )
    return rule_of(op)


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


class _Builder:
    """Walks main once and fills a `Graph`; keeps the value ids of SSA values while it does."""

    def __init__(self, source: Source) -> None:
        self.graph = Graph()
        self.source = source
        self.ids: dict[SSAValue, int] = {}
        self.compiled: dict[tuple[str, int, tuple[Shape, ...], Slides], OpShape] = {}
        self.kept_rules: list[Rule] = []
        self.texts: dict[int, str] = {}
        self.region = 0
        self.order: Sweep = self.graph.order

    # --- main ---------------------------------------------------------------------------------

    def main(self) -> None:
        function, graph = self.source.function, self.graph
        block = function.body.block
        self.source.blocks.append(block)
        for ssa, name in zip(block.args, argument_names(function), strict=True):
            rule = identity_rule(tensor_facts(ssa.type)[0], 0, 1)
            op = self.op(ARGUMENT, rule, (), (ssa,), self.where(ssa.location))
            self.slot(op)
            graph.arguments.append(Argument(name, graph.results[op][0], op, None))
        terminator = self.block(block)
        if not isinstance(terminator, ReturnOp):
            raise PartirError("main must end in func.return")
        for ssa, name in zip(terminator.operands, result_names(function), strict=True):
            value = self.ids[ssa]
            rule = identity_rule(graph.shapes[value], 1, 0)
            op = self.op(RESULT, rule, (value,), (), self.where(terminator.location))
            self.slot(op)
            graph.outcomes.append(Result(name, value, op, None))
        self.source.values.update({number: ssa for ssa, number in self.ids.items()})

    def block(self, block: Block) -> Operation:
        """The ops of a block up to its terminator, which is returned."""
        last = block.last_op
        assert last is not None
        for op in block.ops:
            if op is last:
                break
            if op.name == WHILE:
                self.loop(op)
            elif op.name in BRANCHES:
                self.branches(op)
            else:
                self.plain(op)
        return last

    def plain(self, op: Operation) -> None:
        captured = _captured(op) if op.regions else []
        operands = tuple(self.ids[v] for v in (*op.operands, *captured))
        rule = _rule_for(op, captured)
        told = op.name == "sdy.sharding_constraint" or "sdy.sharding" in op.attributes
        number = self.op(
            op.name,
            rule,
            operands,
            tuple(op.results),
            self.where(op.location),
            slides_of(op, rule),
            told=told,
        )
        self.slot(number)
        self.source.ops[number] = op
        if isinstance(op, ManualComputationOp):
            self.graph.manual[number] = manual_border(op)
        if captured:
            self.source.captured[number] = captured
        if isinstance(op, ReplicateOp | StopOp):
            for axis in op.axis_names:
                self.graph.marks[operands[0], axis] = isinstance(op, ReplicateOp)

    # --- control flow -------------------------------------------------------------------------

    def loop(self, op: Operation) -> None:
        """A while: enter, condition, body, exit."""
        where = self.where(op.location)
        condition, body = (region.blocks[0] for region in op.regions)
        outer = self.order
        self.order = []
        outer.append(self.order)
        carries: list[int] = []
        terminator = body.last_op
        assert terminator is not None
        for index, operand in enumerate(op.operands):
            value = self.ids[operand]
            rule = identity_rule(self.graph.shapes[value], 1, 2)
            entered = (body.args[index], condition.args[index])
            number = self.op(ENTER, rule, (value,), entered, where)
            self.slot(number)
            self.source.places[number] = Place(op, index)
            carries.append(number)
            if terminator.operands[index] is body.args[index]:  # passed through unchanged
                for result in self.graph.results[number]:
                    self.graph.derived[result] = self.graph.derived[value]
        trips = trip_count(op)
        self.inside(condition, trips, lambda last: self.predicate(last, 0))
        self.inside(body, trips, lambda last: self.yields(last, carries))
        self.exits(op, carries)
        self.order = outer

    def branches(self, op: Operation) -> None:
        """A case or if: the predicate, each branch, and what comes out."""
        outer = self.order
        self.order = []
        outer.append(self.order)
        self.predicate(op, 0)
        where = self.where(op.location)
        carries: list[int] = []
        for result in op.results:  # a slot without an init; the exit is made last
            rule = identity_rule(tensor_facts(result.type)[0], 0, 0)
            number = self.op(ENTER, rule, (), (), where)
            self.slot(number)
            self.source.places[number] = Place(op, len(carries))
            carries.append(number)
        for region in op.regions:
            self.inside(region.blocks[0], 1, lambda last: self.yields(last, carries))
        self.exits(op, carries)
        self.order = outer

    def inside(self, block: Block, trips: int | None, end: Callable[[Operation], None]) -> None:
        """The ops of a region, and then what its terminator does."""
        graph = self.graph
        around = graph.regions[self.region].trips
        known = None if trips is None or around is None else trips * around
        graph.regions.append(Region(self.region, known))
        outer, self.region = self.region, len(graph.regions) - 1
        self.source.blocks.append(block)
        end(self.block(block))
        self.region = outer

    def predicate(self, op: Operation, index: int) -> None:
        """Decides for all devices alike: wanted whole."""
        value = self.ids[op.operands[index]]
        shapes = [self.graph.shapes[value]]
        number = self.op(
            PREDICATE, _blocked_rule(shapes, []), (value,), (), self.where(op.location)
        )
        self.slot(number)
        self.source.places[number] = Place(op, index)

    def yields(self, terminator: Operation, carries: list[int]) -> None:
        for index, (operand, carry) in enumerate(zip(terminator.operands, carries, strict=True)):
            value = self.ids[operand]
            rule = identity_rule(self.graph.shapes[value], 1, 0)
            number = self.op(YIELD, rule, (value,), (), self.where(terminator.location))
            self.slot(number, carry)
            self.source.places[number] = Place(terminator, index)

    def exits(self, op: Operation, carries: list[int]) -> None:
        for index, (result, carry) in enumerate(zip(op.results, carries, strict=True)):
            rule = identity_rule(tensor_facts(result.type)[0], 0, 1)
            number = self.op(EXIT, rule, (), (result,), self.where(op.location))
            self.slot(number, carry)
            self.source.places[number] = Place(op, index)

    # --- ops and values -----------------------------------------------------------------------

    def where(self, location: Attribute) -> str:
        """The text of a location; by identity, since equal texts are one attribute as read."""
        text = self.texts.get(id(location))
        if text is None:
            text = self.texts[id(location)] = location_text(location)
        return text

    def slot(self, op: int, shared: int | None = None) -> None:
        """Gives the op a slot of its own, or that of another op."""
        graph = self.graph
        if shared is None:
            graph.slots.append(op)
            graph.slot_ops.append((op,))
            self.order.append(op)
        else:
            graph.slots.append(shared)
            graph.slot_ops.append(())
            graph.slot_ops[shared] = (*graph.slot_ops[shared], op)

    def op(
        self,
        kind: str,
        rule: Rule,
        operands: tuple[int, ...],
        results: tuple[SSAValue, ...],
        location: str,
        slides: Slides = (),
        *,
        told: bool = False,
    ) -> int:
        graph = self.graph
        number = len(graph.kinds)
        graph.kinds.append(kind)
        graph.region_of.append(self.region)
        graph.operands.append(operands)
        for k, operand in enumerate(operands):
            graph.uses[operand].append((number, k))
        graph.results.append(tuple(self.value(ssa, number, r) for r, ssa in enumerate(results)))
        captured = tuple(graph.shapes[v] for v in operands[len(rule.operands) :])
        key = (kind, id(rule), captured, slides)
        compiled = self.compiled.get(key)
        if compiled is None:
            self.kept_rules.append(rule)  # ids stay unique while the rule lives
            compiled = self.compiled[key] = compile_rule(kind, rule, captured, slides)
        graph.op_shapes.append(compiled)
        graph.locations.append(location)
        self.static_facts(number, told)
        return number

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

    def static_facts(self, op: int, placed: bool) -> None:
        """Rule 2: which dimensions no argument was sliced to make; and what derives from arguments
        alone by ops that only change shape or type."""
        graph = self.graph
        kind, operands = graph.kinds[op], graph.operands[op]
        shape = graph.op_shapes[op]
        told = placed or kind == ARGUMENT or kind in CARRY_KINDS or kind not in LOCAL_OPS
        for r in range(len(graph.results[op])):
            graph.generated.append(
                tuple(
                    not told
                    and all(
                        graph.generated[operands[k]][d]
                        for f in made_of
                        for k, d in shape.where_in[f]
                    )
                    for made_of in shape.outputs[r]
                )
            )
            through = kind in TRANSPARENT and len(operands) == 1 and graph.derived[operands[0]]
            graph.derived.append(kind == ARGUMENT or through)


def manual_border(op: ManualComputationOp) -> tuple[AxisNames, AxisNames]:
    """By which (manual, whole) axes each operand and each result is cut."""
    manual = set(op.manual_axes.names)

    def names(sharding: Sharding, value: SSAValue) -> tuple[tuple[str, ...], ...]:
        if not isinstance(value.type, TensorType):
            return ()
        for axis in sharding.axes_used():
            if axis.name in manual and axis.size is not None:
                raise PartirError(f"a part of a manual axis cannot be expressed, got: {axis}")
        return tuple(tuple(a.name for a in d.axes if a.name in manual) for d in sharding.dims)

    return (
        tuple(map(names, op.in_shardings.data, op.operands)),
        tuple(map(names, op.out_shardings.data, op.results)),
    )


def trip_count(loop: Operation) -> int | None:
    """How often a while runs, when it counts one carry from a constant to a constant."""
    condition, body = (region.blocks[0] for region in loop.regions)
    test = condition.last_op.operands[0].owner if condition.last_op else None
    if not isinstance(test, Operation) or test.name != "stablehlo.compare":
        return None
    counter, bound = test.operands
    if counter not in condition.args or "LT" not in str(test.properties["comparison_direction"]):
        return None
    index = condition.args.index(counter)
    last = body.last_op
    step = last.operands[index].owner if last else None
    if not isinstance(step, Operation) or step.name != "stablehlo.add":
        return None
    others = [operand for operand in step.operands if operand is not body.args[index]]
    if len(others) != 1:
        return None
    start, stride, end = (_constant(v) for v in (loop.operands[index], others[0], bound))
    if start is None or end is None or not stride or stride < 0:
        return None
    return max(0, -((start - end) // stride))


def _constant(value: SSAValue) -> int | None:
    """The integer that a scalar value is, if it is a constant."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.constant":
        held = cast("Dense", owner.properties["value"])
        array = to_numpy(held)
        if array.size == 1 and array.dtype.kind in "iu":
            return int(array.reshape(()))
    return None
