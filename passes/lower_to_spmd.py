"""`partir-lower-to-spmd`: the device-local program with explicit collectives, from a plan.

Precondition: a prepared module in nest form (or the plan of a state over its graph). Postcondition:
the same ops with local types, the plan's reshards as `partir` collectives by mesh axis in the
plan's order, and a border on main's arguments and results. Nothing is decided here: the plan is
materialised step for step, results retyped in place.

```mlir
%0 = stablehlo.dot_general %x, %w … {partir.nest = #partir.nest<[model: k]>}
  : (tensor<64x8xf32>, tensor<8x16xf32>) -> tensor<64x16xf32>
```
becomes, with `"model"=2`,
```mlir
%0 = stablehlo.dot_general %x, %w … : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
%1 = partir.all_reduce "add" ["model"] %0 : tensor<64x16xf32>
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context as XdslContext
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..engine.build import Place, Source
from ..engine.graph import ENTER, EXIT
from ..engine.plan import Compute, Plan, Reshard
from ..engine.route import Move
from ..partir_dialect import partir_spmd as partir
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir_attributes import Border, MeshAttr
from ..partir_dialect.partir_types import CARRIES, FORM, NEST
from ..partir_dialect.sdy import ManualComputationOp, MeshOp, ShardingConstraintOp
from .emit import Emitter, tensor_of
from .localise import ATTRIBUTES, REPLACING, REWRITES
from .localise_context import Context
from .manual_region import inline_manual
from .tile import open_session

BORDER = "partir.border"
_DROPPED = frozenset(
    {"tf.aliasing_output", "jax.buffer_donor", "mhlo.sharding", "sdy.sharding", NEST}
)


@dataclass(frozen=True)
class Lowered:
    """The SSA value of each local value of the plan (None where no step made it)."""

    values: tuple[SSAValue | None, ...]


def lower_to_spmd(source: Source, plan: Plan, mesh: Mesh) -> Lowered:
    """Rewrites the module of `source` in place into the program that `plan` describes."""
    return _Lowering(source, plan, mesh).run()


def reshard_op(
    value: SSAValue, move: Move, axes: tuple[str, ...], mesh: Mesh, type_: Attribute
) -> Operation:
    """The `partir` op of one move on a local value; `type_` is the result type."""
    dims = tuple(tuple(axes[a] for a in dim) for dim in move.axes)
    if move.kind == "all_slice":
        return partir.AllSliceOp(value, dims, type_)
    if move.kind == "all_gather":
        return partir.AllGatherOp(value, dims, type_)
    if move.kind == "all_reduce":
        assert move.reducer is not None
        return partir.AllReduceOp(value, move.reducer, dims[0])
    if move.kind == "reduce_scatter":
        assert move.reducer is not None
        return partir.ReduceScatterOp(value, move.reducer, dims, type_)
    if move.kind == "all_to_all":
        assert move.dims is not None
        names = tuple(axes[a] for a in move.group)
        return partir.AllToAllOp(value, move.dims[0], move.dims[1], names, type_)
    assert move.kind == "collective_permute", move
    pairs = permute_pairs if move.halo is None else halo_pairs
    return partir.CollectivePermuteOp(value, pairs(move, axes, mesh))


def halo_pairs(move: Move, axes: tuple[str, ...], mesh: Mesh) -> list[tuple[int, int]]:
    """Who sends to whom when each tile of a dimension goes to another: within every line of devices
    along its axes."""
    assert move.halo is not None
    names = tuple(axes[a] for a in move.group)
    targets = dict(move.halo.pairs)
    return [
        (group[source], group[target])
        for group in mesh.groups(names)
        for source, target in targets.items()
    ]


def permute_pairs(move: Move, axes: tuple[str, ...], mesh: Mesh) -> list[tuple[int, int]]:
    """Who sends to whom when the axes of a dimension change their order: the device that holds a
    tile in the old order sends it to the one that holds it in the new order."""
    before = [tuple(axes[a] for a in dim) for dim in move.before.dims]
    after = [tuple(axes[a] for a in dim) for dim in move.after.dims]
    rest = [name for name in mesh.names if not any(name in dim for dim in before)]

    def position(device: int, dims: list[tuple[str, ...]]) -> tuple[int, ...]:
        return (
            *(mesh.index(device, dim) for dim in dims),
            *(mesh.coordinate(device, name) for name in rest),
        )

    holder = {position(device, after): device for device in range(mesh.devices)}
    return [(device, holder[position(device, before)]) for device in range(mesh.devices)]


class _Lowering:
    def __init__(self, source: Source, plan: Plan, mesh: Mesh) -> None:
        self.source = source
        self.plan = plan
        self.graph = plan.graph
        self.mesh = mesh
        self.block = source.function.body.block
        self.last: list[Operation | None] = [None] * len(source.blocks)
        self.ssa: list[SSAValue | None] = [None] * len(plan.values)
        self.types: dict[tuple[Attribute, tuple[int, ...]], Attribute] = {}

    def run(self) -> Lowered:
        for op in self.plan.deferrals.moved:
            self.source.ops[op].detach()
        for argument, local in zip(self.graph.arguments, self.plan.arguments, strict=True):
            value = self.source.values[argument.value]
            self._retype(value, local)
            self.ssa[local] = value
        for step in self.plan.steps:
            if isinstance(step, Compute):
                self._compute(step)
            else:
                self._reshard(step)
        self._border()
        return Lowered(tuple(self.ssa))

    # --- steps --------------------------------------------------------------------------------

    def _local_type(self, type_: Attribute, shape: tuple[int, ...]) -> Attribute:
        if not isinstance(type_, TensorType):
            return type_
        tensor = cast("TensorType[Attribute]", type_)
        key = (tensor, shape)
        found = self.types.get(key)
        if found is None:
            found = TensorType(tensor.element_type, shape, tensor.encoding)
            self.types[key] = found
        return found

    def _retype(self, value: SSAValue, local: int) -> None:
        shape = self.plan.values[local].shape
        type_: Attribute = value.type
        if isinstance(type_, TensorType) and tensor_of(value).get_shape() != shape:
            value._type = self._local_type(cast("Attribute", type_), shape)  # pyright: ignore[reportPrivateUsage]

    def _value(self, local: int) -> SSAValue:
        value = self.ssa[local]
        assert value is not None, self.plan.values[local]
        return value

    def _compute(self, step: Compute) -> None:
        if step.op in self.source.places:
            self._control(step, self.source.places[step.op])
            return
        op = self.source.ops[step.op]
        if step.op in self.plan.deferrals.moved:
            self._emitter(self.graph.region_of[step.op], op.location).insert(op)
        explicit = len(op.operands)
        wanted = [self._value(local) for local in step.inputs]
        if any(a is not b for a, b in zip(op.operands, wanted, strict=False)):
            op.operands = wanted[:explicit]
        if isinstance(op, ManualComputationOp | ShardingConstraintOp):
            self._give_way(step, op, wanted)
            return
        self._replace_captured(step.op, op, wanted[explicit:])
        for result, local in zip(op.results, step.outputs, strict=True):
            self._retype(result, local)
            self.ssa[local] = result
        self._localise(step, op)

    def _give_way(
        self,
        step: Compute,
        op: ManualComputationOp | ShardingConstraintOp,
        wanted: list[SSAValue],
    ) -> None:
        """A constraint is its operand, once that is placed; a region for each device its body."""
        results = wanted
        if isinstance(op, ManualComputationOp):
            region = self.graph.region_of[step.op]
            results, self.last[region] = inline_manual(
                op, wanted, self.source.blocks[region], self.last[region]
            )
        for old, new, local in zip(op.results, results, step.outputs, strict=True):
            old.replace_all_uses_with(new)
            self.ssa[local] = new
        op.detach()
        op.erase()

    def _replace_captured(self, number: int, op: Operation, wanted: list[SSAValue]) -> None:
        for old, new in zip(self.source.captured.get(number, []), wanted, strict=True):
            if old is not new:
                inside = {id(inner) for region in op.regions for inner in region.walk()}
                old.replace_uses_with_if(new, lambda use, ids=inside: id(use.operation) in ids)

    def _localise(self, step: Compute, op: Operation) -> None:
        graph = self.graph
        before = tuple(graph.shapes[v] for v in graph.operands[step.op])
        after = tuple(graph.shapes[v] for v in graph.results[step.op])
        attributes = ATTRIBUTES.get(op.name)
        locals_ = tuple(self.plan.values[local].shape for local in (*step.inputs, *step.outputs))
        if attributes is not None and locals_ != (*before, *after):
            attributes(op, before[0] if before else ())
        region = self.graph.region_of[step.op]
        previous, self.last[region] = self.last[region], op
        if not step.rewrites:
            return
        block = self.source.blocks[region]
        emit, behind = Emitter(block, previous, op.location), Emitter(block, op, op.location)
        results = list[SSAValue](op.results)
        for name, factor, axes in step.rewrites:
            context = Context(
                self.mesh,
                graph.op_shapes[step.op],
                factor,
                tuple(self.plan.axes[a] for a in axes),
                before,
                after,
                behind,
                results,
                tuple(self._value(local) for local in step.halos),
            )
            REWRITES[name](op, context, emit)
        self.last[region] = behind.last
        for local, made in zip(step.outputs, results, strict=True):
            self.ssa[local] = made
        if any(name in REPLACING for name, _, _ in step.rewrites):
            op.results[0].replace_all_uses_with(results[0])
            op.detach()
            op.erase()

    def _control(self, step: Compute, place: Place) -> None:
        """A pseudo-op of control flow: an operand is set, arguments and results get local types."""
        op, index = place.op, place.index
        kind = self.graph.kinds[step.op]
        if step.inputs:
            op.operands[index] = self._value(step.inputs[0])
        if kind == ENTER and step.outputs:  # a branch has no carries that enter
            values = [region.blocks[0].args[index] for region in reversed(op.regions)]
        else:
            values = [op.results[index]] if kind == EXIT else []
        for value, local in zip(values, step.outputs, strict=bool(step.outputs)):
            self._retype(value, local)
            self.ssa[local] = value
        if kind == EXIT:
            self.last[self.graph.region_of[step.op]] = op

    def _reshard(self, step: Reshard) -> None:
        value = self._value(step.source)
        type_ = self._local_type(value.type, self.plan.values[step.target].shape)
        owner = value.owner
        location = owner.location if isinstance(owner, Operation) else self._use_location(step)
        emit = self._emitter(step.region, location)
        halo = step.move.halo
        if halo is not None:
            value = emit.part(value, halo.dim, halo.start, halo.size)
        op = emit.insert(reshard_op(value, step.move, self.plan.axes, self.mesh, type_))
        self.last[step.region] = op
        self.ssa[step.target] = op.results[0]

    def _emitter(self, region: int, location: LocationAttr) -> Emitter:
        """Emits behind the last op that stands in the region."""
        return Emitter(self.source.blocks[region], self.last[region], location)

    def _use_location(self, step: Reshard) -> LocationAttr:
        for op, _ in step.uses:
            if op in self.source.ops:
                return self.source.ops[op].location
        return self.source.function.location

    # --- border -------------------------------------------------------------------------------

    def _border(self) -> None:
        function = self.source.function
        terminator = self.block.last_op
        assert terminator is not None
        terminator.operands = [self._value(local) for local in self.plan.results]
        function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in self.block.args],
            [operand.type for operand in terminator.operands],
        )
        graph = self.graph
        arguments = [
            self._attributes(
                function.arg_attrs, i, local, graph.arguments[i].name, graph.arguments[i].alias
            )
            for i, local in enumerate(self.plan.arguments)
        ]
        results = [
            self._attributes(function.res_attrs, i, local, graph.outcomes[i].name, None)
            for i, local in enumerate(self.plan.results)
        ]
        function.properties["arg_attrs"] = ArrayAttr(arguments)
        function.properties["res_attrs"] = ArrayAttr(results)
        for op in list(self.source.module.walk()):  # nothing speaks of a mesh any more
            op.attributes.pop("sdy.sharding", None)
            op.attributes.pop("mhlo.sharding", None)
            if isinstance(op, MeshOp):
                op.detach()
                op.erase()
        self.source.module.attributes["partir.mesh"] = MeshAttr(self.mesh)

    def _attributes(
        self,
        old: ArrayAttr[DictionaryAttr] | None,
        index: int,
        local: int,
        name: str,
        alias: int | None,
    ) -> DictionaryAttr:
        """The attributes of one argument or result: ours in place of sharding and aliasing."""
        kept = dict(old.data[index].data) if old is not None and len(old) > index else {}
        kept = {key: value for key, value in kept.items() if key not in _DROPPED}
        value = self.plan.values[local]
        placement = self.plan.placement(local)
        shape, dtype = self.graph.shapes[value.value], self.graph.dtypes[value.value]
        kept[BORDER] = StringAttr(str(Border(shape, dtype, placement.dims, name)))
        if alias is not None:
            kept["tf.aliasing_output"] = IntegerAttr(alias, i32)
        return DictionaryAttr(kept)


@dataclass(frozen=True)
class LowerToSpmdPass(ModulePass):
    """Lowers a module in nest form to its device-local program."""

    name = "partir-lower-to-spmd"

    mesh: str | None = None

    def apply(self, ctx: XdslContext, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        lower_to_spmd(source, session.plan(), session.state.mesh)
        drop_nests(op)


def drop_nests(module: ModuleOp) -> None:
    """Takes the module out of nest form."""
    module.attributes.pop(FORM, None)
    for op in module.walk():
        op.attributes.pop(NEST, None)
        op.attributes.pop(CARRIES, None)
