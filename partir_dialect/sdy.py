"""Which sdy (Shardy) ops are there? Meshes, constraints, manual regions, explicit collectives."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Dialect, Region, SSAValue
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
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect, SymbolOpInterface

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
from .sdy_values import AxisRef, DimSharding, MeshValue, Sharding, ShardingRule
from .stablehlo_base import HloOp, Int, Text, Value, hlo_op, int64, same_type

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
        check_mesh(self, self.mesh.data)


def check_mesh(op: HloOp, mesh: MeshValue) -> None:
    """Fails unless axes have one name and a positive size each, and devices fit."""
    names = [name for name, _ in mesh.axes]
    for name, size in mesh.axes:
        if size < 1:
            op.fail(f"axis size must be at least 1, got: {size}")
        if names.count(name) > 1:
            op.fail(f"axis named twice in the mesh: {name}")
    if not mesh.device_ids:
        return
    if not mesh.axes:
        if len(mesh.device_ids) != 1 or mesh.device_ids[0] < 0:
            op.fail(f"a mesh without axes has one device, got: {list(mesh.device_ids)}")
    elif sorted(mesh.device_ids) != list(range(mesh.device_count)):
        op.fail(f"devices must be 0 to {mesh.device_count - 1}, got: {list(mesh.device_ids)}")


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
        check_sharding(self, self.sharding.data, self.input.type)


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
        check_sharding(self, self.sharding.data, self.input.type)


def check_sharding(op: HloOp, sharding: Sharding, type_: Attribute) -> None:
    """Fails unless the sharding speaks of as many dimensions as the tensor has."""
    from xdsl.dialects.builtin import TensorType

    if isinstance(type_, TensorType) and len(type_.shape.data) != sharding.rank:
        maximal = isinstance(sharding.mesh, MeshValue) and sharding.mesh.is_maximal
        if not (maximal and sharding.rank == 0):
            op.fail(f"sharding has rank {sharding.rank}, tensor has: {len(type_.shape.data)}")
    seen: set[AxisRef] = set()
    for axis in sharding.axes_used():
        if axis in seen:
            op.fail(f"axis used twice in a sharding: {axis}")
        seen.add(axis)


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
    allowed_direction = prop_def(Int)
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


@hlo_op
class ConstantOp(HloOp):
    """A constant that Shardy does not let be shared.

    `%c = sdy.constant dense<0.0> : tensor<8xf32>`
    """

    name = "sdy.constant"
    value = prop_def()
    output = result_def()
    traits = traits_def(Pure())


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
        sides = (
            ("in_shardings", self.in_shardings.data, self.tensors),
            ("out_shardings", self.out_shardings.data, self.results_),
        )
        for side, shardings, values in sides:
            if len(shardings) != len(values):
                self.fail(f"{side} must be {len(values)}, got: {len(shardings)}")
            for sharding, value in zip(shardings, values, strict=True):
                check_sharding(self, sharding, value.type)


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


# --- collectives in terms of shardings -----------------------------------------------------


class _CollectiveOp(_SameTypeOp, ABC):
    """Moves a tensor to `out_sharding`; its global type stays."""

    tensor = operand_def()
    out_sharding = prop_def(ShardingAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        check_sharding(self, self.out_sharding.data, self.tensor.type)


@hlo_op
class AllGatherOp(_CollectiveOp):
    """Joins pieces along axes of each dimension.

    `%r = sdy.all_gather [{"x"}, {}] %t out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_gather"
    tensor = operand_def()
    gathering_axes = prop_def(ListOfAxisRefListsAttr)


@hlo_op
class AllSliceOp(_CollectiveOp):
    """Takes this device's piece along axes of each dimension.

    `%r = sdy.all_slice [{"x"}, {}] %t out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_slice"
    slicing_axes = prop_def(ListOfAxisRefListsAttr)


@hlo_op
class AllReduceOp(_CollectiveOp):
    """Sums over axes.

    `%r = sdy.all_reduce {"x"} %t out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_reduce"
    reduction_axes = prop_def(AxisRefListAttr)


@hlo_op
class ReduceScatterOp(_CollectiveOp):
    """Sums over axes, and leaves each device its piece.

    `%r = sdy.reduce_scatter [{"x"}, {}] %t out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.reduce_scatter"
    reduce_scatter_axes = prop_def(ListOfAxisRefListsAttr)


@hlo_op
class AllToAllOp(_CollectiveOp):
    """Moves axes from one dimension to another.

    `%r = sdy.all_to_all [{"x"}: 0->1] %t out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_to_all"
    params = prop_def(AllToAllParamListAttr)


@hlo_op
class CollectivePermuteOp(_CollectiveOp):
    """Exchanges whole pieces.

    `%r = sdy.collective_permute %t out_sharding=<@mesh, [{"y"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.collective_permute"


@hlo_op
class ReplicatedToUnreducedOp(_CollectiveOp):
    """Calls axes over which the tensor is equal pending: the sum is to give the same tensor.

    `%r = sdy.replicated_to_unreduced {"x"} %t out_sharding=<@mesh, [{}], unreduced={"x"}> : …`
    """

    name = "sdy.replicated_to_unreduced"
    axes = prop_def(AxisRefListAttr)


@hlo_op
class ShardedToUnreducedOp(_CollectiveOp):
    """Turns pieces into whole tensors with zeros, whose sum is pending.

    `%r = sdy.sharded_to_unreduced [{"x"}] %t out_sharding=<@mesh, [{}], unreduced={"x"}> : …`
    """

    name = "sdy.sharded_to_unreduced"
    axes = prop_def(ListOfAxisRefListsAttr)


OPS: list[type[HloOp]] = [
    MeshOp, ShardingConstraintOp, ReshardOp, ShardingGroupOp, PropagationBarrierOp, DataFlowEdgeOp,
    FuncDataFlowEdgeOp, ConstantOp, ManualComputationOp, NamedComputationOp, ReturnOp, AllGatherOp,
    AllSliceOp, AllReduceOp, ReduceScatterOp, AllToAllOp, CollectivePermuteOp,
    ReplicatedToUnreducedOp, ShardedToUnreducedOp,
]  # fmt: skip

Sdy = Dialect("sdy", list(OPS), ATTRIBUTES)
