"""Which sdy ops move data between devices, and what does each do to a sharding?

Every one says the sharding it arrives at; the verifier works it out from the operand's sharding
and the axes, and the two must agree.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from .sdy_attrs import (
    AllToAllParamListAttr,
    AxisRefListAttr,
    ListOfAxisRefListsAttr,
    ShardingAttr,
)
from .sdy_checks import (
    Axes,
    Pieces,
    check_axes,
    check_bound_axes,
    check_sharding,
    joined,
    mesh_of,
    mesh_order,
    overlap,
    pieces,
    same_axes,
    sharding_of,
    split_axes,
    without_suffix,
)
from .sdy_values import DimSharding, MeshValue, Sharding
from .stablehlo_base import HloOp, hlo_op, same_type


class CollectiveOp(HloOp, ABC):
    """Moves a tensor to `out_sharding`; its global type stays.

    `check` compares with what the op does to the operand's sharding; both are on one mesh.
    An operand without a sharding is whole, where `NEEDS_SHARDING` is off.
    """

    NEEDS_SHARDING: ClassVar[bool] = True

    tensor = operand_def()
    out_sharding = prop_def(ShardingAttr)
    result = result_def()
    traits = traits_def(Pure())

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        """Fails unless the op turns the one sharding into the other."""

    def moved_axes(self) -> Axes:
        """The axes that the op communicates over."""
        return ()

    def verify_(self) -> None:
        if not same_type(self.tensor.type, self.result.type):
            self.fail(f"result must be of type {self.tensor.type}, got: {self.result.type}")
        after, before = self.out_sharding.data, sharding_of(self.tensor)
        check_sharding(self, after, self.tensor.type, self.fail)
        if before is None:
            if self.NEEDS_SHARDING:
                self.fail(f"operand must have a sharding, got: {self.tensor.type}")
            before = Sharding(after.mesh, (DimSharding(),) * after.rank)
        mesh, old_mesh = mesh_of(self, after), mesh_of(self, before)
        if mesh is None or old_mesh is None:
            self.fail(f"unknown mesh: {before.mesh}")
        self.check_meshes(before, after, old_mesh, mesh)
        check_bound_axes(self, after.axes_used(), self.fail)
        self.check(before, after, mesh)

    def check_meshes(
        self, before: Sharding, after: Sharding, old: MeshValue, new: MeshValue
    ) -> None:
        """Fails unless both shardings are on one mesh."""
        if before.mesh != after.mesh and old != new:
            self.fail(f"result must be on mesh {before.mesh}, got: {after.mesh}")

    def need_dims(self, lists: Sequence[object], rank: int) -> None:
        """Fails unless there is a list of axes for each dimension."""
        if len(lists) != rank:
            self.fail(f"there must be axes for {rank} dimension(s), got: {len(lists)}")

    def need_dim(self, dim: int, wanted: Pieces, after: Sharding, mesh: MeshValue) -> None:
        """Fails unless dimension `dim` of the result is cut like this."""
        if split_axes(after.dims[dim].axes, mesh) != wanted:
            self.fail(f"dimension {dim} does not follow from the axes, got: {after.dims[dim]}")

    def need_gathered(self, dim: int, before: Sharding, axes: Axes, mesh: MeshValue) -> Pieces:
        """What is left of a dimension when its last axes are taken; fails if they are not."""
        left = without_suffix(before.dims[dim].axes, axes, mesh)
        if left is None:
            self.fail(f"axes are not the last of operand dimension {dim}, got: {before.dims[dim]}")
        return left

    def need_same_dims(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        """Fails unless both shardings cut every dimension alike."""
        for dim, (old, new) in enumerate(zip(before.dims, after.dims, strict=True)):
            if not same_axes(old.axes, new.axes, mesh):
                self.fail(f"dimension {dim} must stay {old}, got: {new}")

    def need_unreduced(
        self, before: Sharding, added: Axes, after: Sharding, mesh: MeshValue
    ) -> None:
        """Fails unless exactly these axes become unreduced."""
        wanted = [*before.unreduced, *added]
        wanted.sort(key=lambda axis: mesh_order(axis, mesh))
        if split_axes(wanted, mesh) != split_axes(after.unreduced, mesh):
            self.fail(f"unreduced axes do not follow from the axes, got: {after}")


class _ListsOp(CollectiveOp, ABC):
    def lists(self) -> tuple[Axes, ...]:
        """Axes for each dimension."""
        raise NotImplementedError

    def moved_axes(self) -> Axes:
        return tuple(axis for axes in self.lists() for axis in axes)

    def check_lists(self, after: Sharding, mesh: MeshValue) -> None:
        """Fails unless there are sound axes for each dimension, none twice."""
        self.need_dims(self.lists(), after.rank)
        for axes in self.lists():
            check_axes(axes, mesh, self.fail)
        _check_apart(self, self.moved_axes(), mesh)


def _check_apart(op: HloOp, axes: Axes, mesh: MeshValue) -> None:
    for position, axis in enumerate(axes):
        if any(overlap(axis, other, mesh) for other in axes[:position]):
            op.fail(f"axis used twice: {axis}")


@hlo_op
class AllGatherOp(_ListsOp):
    """Joins pieces along axes of each dimension.

    `%r = sdy.all_gather [{"x"}, {}] %t out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_gather"
    gathering_axes = prop_def(ListOfAxisRefListsAttr)

    def lists(self) -> tuple[Axes, ...]:
        return self.gathering_axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        self.check_lists(after, mesh)
        for dim, axes in enumerate(self.lists()):
            self.need_dim(dim, self.need_gathered(dim, before, axes, mesh), after, mesh)


@hlo_op
class AllSliceOp(_ListsOp):
    """Takes this device's piece along axes of each dimension.

    `%r = sdy.all_slice [{"x"}, {}] %t out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_slice"
    NEEDS_SHARDING: ClassVar[bool] = False
    slicing_axes = prop_def(ListOfAxisRefListsAttr)

    def lists(self) -> tuple[Axes, ...]:
        return self.slicing_axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        self.check_lists(after, mesh)
        for dim, axes in enumerate(self.lists()):
            wanted = joined(split_axes(before.dims[dim].axes, mesh), axes, mesh)
            self.need_dim(dim, wanted, after, mesh)


@hlo_op
class AllReduceOp(CollectiveOp):
    """Sums over axes.

    `%r = sdy.all_reduce {"x"} %t out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_reduce"
    NEEDS_SHARDING: ClassVar[bool] = False
    reduction_axes = prop_def(AxisRefListAttr)

    def moved_axes(self) -> Axes:
        return self.reduction_axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        axes = self.moved_axes()
        check_axes(axes, mesh, self.fail, ordered=True)
        self.need_same_dims(before, after, mesh)
        taken = (*(axis for dim in before.dims for axis in dim.axes), *before.replicated)
        for axis in axes:
            for other in (*taken, *after.unreduced):
                if overlap(axis, other, mesh):
                    self.fail(f"reduction axis must be free in both shardings, got: {axis}")


@hlo_op
class ReduceScatterOp(_ListsOp):
    """Sums over axes, and leaves each device its piece.

    `%r = sdy.reduce_scatter [{"x"}, {}] %t out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.reduce_scatter"
    NEEDS_SHARDING: ClassVar[bool] = False
    reduce_scatter_axes = prop_def(ListOfAxisRefListsAttr)

    def lists(self) -> tuple[Axes, ...]:
        return self.reduce_scatter_axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        self.check_lists(after, mesh)
        for dim, axes in enumerate(self.lists()):
            wanted = joined(split_axes(before.dims[dim].axes, mesh), axes, mesh)
            self.need_dim(dim, wanted, after, mesh)


@hlo_op
class AllToAllOp(CollectiveOp):
    """Moves axes from one dimension to another.

    `%r = sdy.all_to_all [{"x"}: 0->1] %t out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>`
    """

    name = "sdy.all_to_all"
    params = prop_def(AllToAllParamListAttr)

    def moved_axes(self) -> Axes:
        return tuple(axis for param in self.params.data for axis in param.axes)

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        params = self.params.data
        if not params:
            self.fail("there must be axes to move, got: none")
        used: list[int] = []
        for param in params:
            check_axes(param.axes, mesh, self.fail)
            for dim in (param.source, param.target):
                if not 0 <= dim < after.rank:
                    self.fail(f"dimension must be in [0, {after.rank}), got: {dim}")
                if dim in used:
                    self.fail(f"dimension used twice: {dim}")
                used.append(dim)
        sources = [param.source for param in params]
        if sources != sorted(sources):
            self.fail(f"source dimensions must be in order, got: {sources}")
        wanted = [split_axes(dim.axes, mesh) for dim in before.dims]
        for param in params:
            wanted[param.source] = self.need_gathered(param.source, before, param.axes, mesh)
            wanted[param.target] = joined(wanted[param.target], param.axes, mesh)
        for dim, cut in enumerate(wanted):
            self.need_dim(dim, cut, after, mesh)


@hlo_op
class CollectivePermuteOp(CollectiveOp):
    """Exchanges whole pieces.

    `%r = sdy.collective_permute %t out_sharding=<@mesh, [{"y"}, {}]> : tensor<8x8xf32>`
    """

    name = "sdy.collective_permute"

    def check_meshes(
        self, before: Sharding, after: Sharding, old: MeshValue, new: MeshValue
    ) -> None:
        if before.mesh == after.mesh:
            return
        if old.axes != new.axes:
            self.fail(f"meshes must have the same axes, got: {new}")
        if old.device_ids == new.device_ids:
            self.fail(f"meshes must differ in their devices, got: {new}")

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        for dim, (old, new) in enumerate(zip(before.dims, after.dims, strict=True)):
            count = pieces(old.axes, mesh)
            if pieces(new.axes, mesh) != count:
                self.fail(f"dimension {dim} must be cut in {count}, got: {new}")


@hlo_op
class ReplicatedToUnreducedOp(CollectiveOp):
    """Calls axes over which the tensor is equal pending: the sum is to give the same tensor.

    `%r = sdy.replicated_to_unreduced {"x"} %t out_sharding=<@mesh, [{}], unreduced={"x"}> : …`
    """

    name = "sdy.replicated_to_unreduced"
    axes = prop_def(AxisRefListAttr)

    def moved_axes(self) -> Axes:
        return self.axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        axes = self.moved_axes()
        if not axes:
            self.fail("axes must not be empty, got: {}")
        check_axes(axes, mesh, self.fail, ordered=True)
        self.need_same_dims(before, after, mesh)
        taken = (*(axis for dim in before.dims for axis in dim.axes), *before.unreduced)
        for axis in axes:
            if any(overlap(axis, other, mesh) for other in taken):
                self.fail(f"axis must be replicated in the operand, got: {axis}")
        self.need_unreduced(before, axes, after, mesh)


@hlo_op
class ShardedToUnreducedOp(_ListsOp):
    """Turns pieces into whole tensors with zeros, whose sum is pending.

    `%r = sdy.sharded_to_unreduced [{"x"}] %t out_sharding=<@mesh, [{}], unreduced={"x"}> : …`
    """

    name = "sdy.sharded_to_unreduced"
    axes = prop_def(ListOfAxisRefListsAttr)

    def lists(self) -> tuple[Axes, ...]:
        return self.axes.data

    def check(self, before: Sharding, after: Sharding, mesh: MeshValue) -> None:
        self.check_lists(after, mesh)
        for dim, axes in enumerate(self.lists()):
            self.need_dim(dim, self.need_gathered(dim, before, axes, mesh), after, mesh)
        self.need_unreduced(before, self.moved_axes(), after, mesh)


COLLECTIVE_OPS: list[type[HloOp]] = [
    AllGatherOp, AllSliceOp, AllReduceOp, ReduceScatterOp, AllToAllOp, CollectivePermuteOp,
    ReplicatedToUnreducedOp, ShardedToUnreducedOp,
]  # fmt: skip
