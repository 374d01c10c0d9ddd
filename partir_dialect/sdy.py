"""Which sdy (Shardy) ops are there? Meshes, constraints, manual regions, explicit collectives."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue, TypedAttribute
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from .sdy_attrs import (
    ATTRIBUTES,
    AllToAllParamListAttr,
    AxisRefListAttr,
    ListOfAxisRefListsAttr,
    ManualAxesAttr,
    MeshAttr,
    OpShardingRuleAttr,
    PropagationEdgesAttr,
    ShardingAttr,
    ShardingPerValueAttr,
    direction_attr,
)
from .sdy_checks import (
    check_axes,
    check_bound_axes,
    check_mesh,
    check_sharding,
    check_shardings,
    mesh_of,
)
from .sdy_collectives import (
    COLLECTIVE_OPS,
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    CollectivePermuteOp,
    ReduceScatterOp,
    ReplicatedToUnreducedOp,
    ShardedToUnreducedOp,
)
from .sdy_values import AxisRef, DimSharding, MeshValue, Sharding, ShardingRule
from .stablehlo_base import (
    DYNAMIC,
    AnyTensor,
    HloOp,
    Int,
    Int32,
    Text,
    Value,
    hlo_op,
    int64,
    same_type,
)
from .stablehlo_checks import arguments, check_region, returned

__all__ = [
    "AllGatherOp",
    "AllReduceOp",
    "AllSliceOp",
    "AllToAllOp",
    "AllToAllParamListAttr",
    "AxisRef",
    "AxisRefListAttr",
    "CollectivePermuteOp",
    "ConstantOp",
    "DataFlowEdgeOp",
    "DimSharding",
    "FuncDataFlowEdgeOp",
    "ListOfAxisRefListsAttr",
    "ManualAxesAttr",
    "ManualComputationOp",
    "MeshAttr",
    "MeshOp",
    "MeshValue",
    "NamedComputationOp",
    "OpShardingRuleAttr",
    "PropagationBarrierOp",
    "PropagationEdgesAttr",
    "ReduceScatterOp",
    "ReplicatedToUnreducedOp",
    "ReshardOp",
    "ReturnOp",
    "Sdy",
    "ShardedToUnreducedOp",
    "Sharding",
    "ShardingAttr",
    "ShardingConstraintOp",
    "ShardingGroupOp",
    "ShardingPerValueAttr",
    "ShardingRule",
]


@hlo_op
class MeshOp(HloOp):
    """A mesh under a name.

    `sdy.mesh @mesh = <["x"=2, "y"=4]>`
    """

    name = "sdy.mesh"
    sym_name = prop_def(Text)
    mesh = prop_def(MeshAttr)
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, mesh: MeshValue) -> None:
        super().__init__(properties={"sym_name": StringAttr(name), "mesh": MeshAttr(mesh)})

    def verify_(self) -> None:
        check_mesh(self.mesh.data, self.fail)


class _SameTypeOp(HloOp, ABC):
    """One operand, a result of the same type: what an op says is about placement only."""

    def verify_(self) -> None:
        if not same_type(self._operands[0].type, self.results[0].type):
            self.fail(
                f"result must be of type {self._operands[0].type}, got: {self.results[0].type}"
            )


@hlo_op
class ShardingConstraintOp(_SameTypeOp):
    """The tensor, which is to be cut like this.

    `%r = sdy.sharding_constraint %x <@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.sharding_constraint"
    input = operand_def()
    sharding = prop_def(ShardingAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, input: Value, sharding: Sharding) -> None:
        super().__init__(
            operands=[input],
            result_types=[SSAValue.get(input).type],
            properties={"sharding": ShardingAttr(sharding)},
        )

    def verify_(self) -> None:
        super().verify_()
        check_sharding(self, self.sharding.data, self.input.type, self.fail)


@hlo_op
class ReshardOp(_SameTypeOp):
    """The tensor, cut in another way.

    `%r = sdy.reshard %x <@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.reshard"
    input = operand_def()
    sharding = prop_def(ShardingAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        check_sharding(self, self.sharding.data, self.input.type, self.fail)
        check_bound_axes(self, self.sharding.data.axes_used(), self.fail)


@hlo_op
class ShardingGroupOp(HloOp):
    """All tensors with one group number are to be cut alike.

    `sdy.sharding_group %x group_id = 21 : tensor<8x8xf32>`
    """

    name = "sdy.sharding_group"
    input = operand_def()
    group_id = prop_def(Int)

    def __init__(self, input: Value, group_id: int) -> None:
        super().__init__(operands=[input], properties={"group_id": int64(group_id)})


@hlo_op
class PropagationBarrierOp(_SameTypeOp):
    """Lets placements pass in the given direction only.

    `%r = sdy.propagation_barrier %x allowed_direction = FORWARD : tensor<8xf32>`
    """

    name = "sdy.propagation_barrier"
    input = operand_def()
    allowed_direction = prop_def(Int32)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, input: Value, direction: str) -> None:
        super().__init__(
            operands=[input],
            result_types=[SSAValue.get(input).type],
            properties={"allowed_direction": direction_attr(direction)},
        )

    def verify_(self) -> None:
        super().verify_()
        direction = self.allowed_direction.value.data
        if not 0 <= direction < 3:
            self.fail(f"direction must be NONE, FORWARD or BACKWARD, got: {direction}")


@hlo_op
class DataFlowEdgeOp(_SameTypeOp):
    """Where a value flows in or out of a region op; its placement holds for all that meets there.

    `%r = sdy.data_flow_edge %x sharding = <@mesh, [{"x"}]> : tensor<8xf32>`
    """

    name = "sdy.data_flow_edge"
    input = operand_def()
    sharding = opt_prop_def(ShardingAttr)
    result = result_def()
    traits = traits_def(Pure())


@hlo_op
class FuncDataFlowEdgeOp(_SameTypeOp):
    """Where a value flows in or out of a function.

    `%r = sdy.func_data_flow_edge %x : tensor<8xf32>`
    """

    name = "sdy.func_data_flow_edge"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        type_, operand = self.result.type, self.operand
        if isinstance(type_, TensorType) and DYNAMIC in cast(AnyTensor, type_).get_shape():
            self.fail(f"result must have a static shape, got: {type_}")
        if not operand.has_one_use():
            self.fail(f"operand must have one use, got: {operand.uses.get_length()}")
        around = operand.owner.parent_op() if isinstance(operand.owner, Block) else operand.owner
        wanted = "func.func" if isinstance(operand.owner, Block) else "func.call"
        if around is None or around.name != wanted:
            self.fail(f"operand must be of a function or a call, got: {around and around.name}")


@hlo_op
class ConstantOp(HloOp):
    """A constant that Shardy does not let be shared.

    `%c = sdy.constant dense<0.0> : tensor<8xf32>`
    """

    name = "sdy.constant"
    value = prop_def()
    output = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        value = self.value
        type_ = value.get_type() if isinstance(value, TypedAttribute) else None
        if type_ is not None and not same_type(type_, self.output.type):
            self.fail(f"result must be of type {type_}, got: {self.output.type}")


@hlo_op
class ManualComputationOp(HloOp):
    """A region written for each device: inside, the manual axes are cut out of the types.

    `%r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>]
    out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) { … } : …`
    """

    name = "sdy.manual_computation"
    tensors = var_operand_def()
    in_shardings = prop_def(ShardingPerValueAttr)
    out_shardings = prop_def(ShardingPerValueAttr)
    manual_axes = prop_def(ManualAxesAttr)
    body = region_def()
    results_ = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        tensors: Sequence[Value],
        in_shardings: Sequence[Sharding],
        out_shardings: Sequence[Sharding],
        manual_axes: Sequence[str],
        body: Region,
        result_types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[tensors],
            result_types=[result_types],
            properties={
                "in_shardings": ShardingPerValueAttr(tuple(in_shardings)),
                "out_shardings": ShardingPerValueAttr(tuple(out_shardings)),
                "manual_axes": ManualAxesAttr(tuple(map(AxisRef, manual_axes))),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        check_manual_computation(self)
        IsolatedFromAbove().verify(self)  # no trait: names go on inside, as MLIR prints it


def check_manual_computation(op: ManualComputationOp) -> None:
    """Fails unless the shardings cut the outside types to those of the region.

    All are on one mesh, manual axes come first in a dimension and divide its size, and the region
    uses nothing from outside.
    """
    outside = (
        ("in_shardings", op.in_shardings.data, op.tensors, arguments(op.body)),
        ("out_shardings", op.out_shardings.data, op.results_, returned(op.body)),
    )
    meshes: list[MeshValue] = []
    for side, shardings, values, inner in outside:
        check_shardings(op, shardings, [value.type for value in values], op.fail)
        if len(inner) != len(values):
            op.fail(f"the region must have {len(values)} value(s) for {side}, got: {len(inner)}")
        for sharding in shardings:
            mesh = mesh_of(op, sharding)
            if mesh is not None and mesh.axes:
                meshes.append(mesh)
    manual = op.manual_axes.data
    if not meshes:
        return
    if any(mesh != meshes[0] for mesh in meshes):
        op.fail(f"all shardings must be on one mesh, got: {meshes[-1]}")
    check_axes(manual, meshes[0], op.fail)
    check_bound_axes(op, manual, op.fail)
    names = set(op.manual_axes.names)
    for _, shardings, values, inner in outside:
        for sharding, value, local in zip(shardings, values, inner, strict=True):
            _check_local(op, sharding, value.type, local.type, names, meshes[0])


def _check_local(
    op: HloOp,
    sharding: Sharding,
    type_: Attribute,
    local: Attribute,
    manual: set[str],
    mesh: MeshValue,
) -> None:
    """Fails unless `local` is `type_` cut by the manual axes of its sharding."""
    if not isinstance(type_, TensorType):
        return
    type_ = cast(AnyTensor, type_)
    shape = list(type_.get_shape())
    for dim, cut in enumerate(sharding.dims):
        flags = [axis.name in manual for axis in cut.axes]
        if flags != sorted(flags, reverse=True):
            op.fail(f"manual axes must come first in dimension {dim}, got: {cut}")
        count = prod(axis.size_on(mesh) for axis in cut.axes if axis.name in manual)
        if shape[dim] != DYNAMIC:
            if shape[dim] % count:
                op.fail(f"dimension {dim} must be divisible by {count}, got: {shape[dim]}")
            shape[dim] //= count
    wanted = TensorType(type_.element_type, shape)
    if wanted.get_shape() != getattr(local, "get_shape", tuple)():
        op.fail(f"the region must have a {wanted} here, got: {local}")


@hlo_op
class NamedComputationOp(HloOp):
    """A group of ops under a name.

    `%r = sdy.named_computation<"name">(%x) (%a: tensor<8xf32>) { … } : …`
    """

    name = "sdy.named_computation"
    operands_ = var_operand_def()
    computation_name = prop_def(Text, prop_name="name")
    in_shardings = opt_prop_def(ShardingPerValueAttr)
    out_shardings = opt_prop_def(ShardingPerValueAttr)
    body = region_def()
    results_ = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        takes, gives = self.operands_.types, self.results_.types
        check_region(self, "body", self.body, takes, gives)
        for shardings, types in ((self.in_shardings, takes), (self.out_shardings, gives)):
            if shardings is not None:
                check_shardings(self, shardings.data, types, self.fail)


@hlo_op
class ReturnOp(HloOp):
    """What the region of a sdy op gives.

    `sdy.return %a, %b : tensor<8xf32>, tensor<i1>`
    """

    name = "sdy.return"
    results_ = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, results: Sequence[Value]) -> None:
        super().__init__(operands=[results])


OPS: list[type[HloOp]] = [
    MeshOp, ShardingConstraintOp, ReshardOp, ShardingGroupOp, PropagationBarrierOp, DataFlowEdgeOp,
    FuncDataFlowEdgeOp, ConstantOp, ManualComputationOp, NamedComputationOp, ReturnOp,
    *COLLECTIVE_OPS,
]  # fmt: skip

Sdy = Dialect("sdy", list(OPS), ATTRIBUTES)
