"""`partir-to-stablehlo`: collectives by mesh axis become StableHLO collectives by device group.

Precondition: a device-local module with `partir.mesh`. Postcondition: StableHLO alone. Groups cover
all devices and are ordered by the position along the axes, so group order is tile order; a device's
position comes from `partition_id`, computed once at the start of main.

```mlir
%1 = partir.all_gather %0 [["batch"], []] : tensor<2x4xf32> -> tensor<8x4xf32>
```
becomes
```mlir
%1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0, replica_groups = dense<[[0, 2, 4, 6], …]>, …}>
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..partir_dialect import partir_spmd as partir
from ..partir_dialect import stablehlo
from ..partir_dialect.constants import dense_attribute
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir_attributes import MeshAttr
from ..partir_dialect.stablehlo_attrs import ChannelHandleAttr
from .emit import Emitter, tensor_of

_REDUCERS: dict[str, type[Operation]] = {
    "add": stablehlo.AddOp,
    "max": stablehlo.MaximumOp,
    "min": stablehlo.MinimumOp,
    "mul": stablehlo.MultiplyOp,
    "and": stablehlo.AndOp,
    "or": stablehlo.OrOp,
}
_UI32 = IntegerType(32, Signedness.UNSIGNED)


def to_stablehlo(module: ModuleOp) -> None:
    """Rewrites every `partir` op of a device-local module in place."""
    mesh = module.attributes.get("partir.mesh")
    if not isinstance(mesh, MeshAttr):
        raise PassFailedException(
            f"the module has no partir.mesh, its attributes: {[*module.attributes]}"
        )
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            _Function(function, mesh.data).run()
    del module.attributes["partir.mesh"]
    module.attributes["mhlo.num_partitions"] = IntegerAttr(mesh.data.devices, i32)
    module.attributes["mhlo.num_replicas"] = IntegerAttr(1, i32)


def _dense(array: Sequence[Sequence[int]]) -> Attribute:
    values = np.asarray(array, np.int64)
    type_: TensorType[Attribute] = TensorType(i64, values.shape)
    data = values.tobytes()
    if values.size > 1 and len(set(values.reshape(-1).tolist())) == 1:
        data = data[:8]
    return dense_attribute(type_, data)


def reducer_region(reducer: str, element: Attribute) -> Region:
    """A body that combines two scalars."""
    scalar = TensorType(element, [])
    block = Block(arg_types=[scalar, scalar])
    combined = _REDUCERS[reducer].create(operands=block.args, result_types=[scalar])
    block.add_op(combined)
    block.add_op(stablehlo.ReturnOp.create(operands=combined.results))
    return Region(block)


class _Function:
    """Rewrites one function; axis positions are made once, at its start."""

    def __init__(self, function: FuncOp, mesh: Mesh) -> None:
        self.function = function
        self.mesh = mesh
        self.positions: dict[str, SSAValue] = {}
        self.starts: dict[tuple[tuple[str, ...], int], SSAValue] = {}
        block = function.body.blocks[0]
        self.head = Emitter(block, None, function.location)
        self.properties = _Properties(mesh)

    def run(self) -> None:
        for op in list(self.function.walk()):
            rewrite = _REWRITES.get(op.name)
            if rewrite is not None:
                rewrite(self, op)

    # --- where a device is --------------------------------------------------------------------

    def position(self, axis: str) -> SSAValue:
        """The coordinate along one axis (i32)."""
        found = self.positions.get(axis)
        if found is None:
            if "" not in self.positions:
                raw = self.head.insert(
                    stablehlo.PartitionIdOp.create(result_types=[TensorType(_UI32, [])])
                )
                self.positions[""] = self.head.convert(raw.results[0], i32)
            index = self.positions[""]
            if self.mesh.stride(axis) > 1:
                index = self.head.divide(index, self.head.integer(self.mesh.stride(axis)))
            if self.mesh.stride(axis) * self.mesh.size(axis) < self.mesh.devices:
                index = self.head.remainder(index, self.head.integer(self.mesh.size(axis)))
            found = self.positions[axis] = index
        return found

    def start(self, axes: tuple[str, ...], size: int) -> SSAValue:
        """Where the tile of a device begins in a dimension, for tiles of `size` elements."""
        key = (axes, size)
        found = self.starts.get(key)
        if found is None:
            index = self.position(axes[0])
            for axis in axes[1:]:
                scaled = self.head.multiply(index, self.head.integer(self.mesh.size(axis)))
                index = self.head.add(scaled, self.position(axis))
            found = index if size == 1 else self.head.multiply(index, self.head.integer(size))
            self.starts[key] = found
        return found

    def zero(self) -> SSAValue:
        key = ((), 0)
        if key not in self.starts:
            self.starts[key] = self.head.integer(0)
        return self.starts[key]

    # --- rewrites -----------------------------------------------------------------------------

    def replace(self, op: Operation, value: SSAValue) -> None:
        op.results[0].replace_all_uses_with(value)
        op.detach()
        op.erase()

    def behind(self, op: Operation) -> Emitter:
        block = op.parent
        assert block is not None
        return Emitter(block, op, op.location)

    def axis_index(self, op: Operation) -> None:
        assert isinstance(op, partir.AxisIndexOp)
        element = tensor_of(op.results[0]).element_type
        self.replace(op, self.head.convert(self.position(op.axis.data), element))

    def identity(self, op: Operation) -> None:
        self.replace(op, op.operands[0])

    def all_slice(self, op: Operation) -> None:
        assert isinstance(op, partir.AllSliceOp)
        sizes = tensor_of(op.results[0]).get_shape()
        emit = self.behind(op)
        whole = [size * self._tiles(axes) for size, axes in zip(sizes, op.dim_axes, strict=True)]
        starts = [
            self.start(axes, size) if axes else self.zero()
            for axes, size in zip(op.dim_axes, sizes, strict=True)
        ]
        self.replace(op, emit.dynamic_slice(emit.pad_tail(op.source, whole), starts, sizes))

    def _tiles(self, axes: Sequence[str]) -> int:
        return prod(self.mesh.size(axis) for axis in axes)

    def all_gather(self, op: Operation) -> None:
        assert isinstance(op, partir.AllGatherOp)
        emit, value = self.behind(op), op.source
        for d, axes in enumerate(op.dim_axes):
            if axes:
                shape = list(tensor_of(value).get_shape())
                shape[d] *= self._tiles(axes)
                value = self._collective(
                    emit,
                    stablehlo.AllGatherOp,
                    value,
                    shape,
                    {"all_gather_dim": IntegerAttr(d, i64), **self.properties.global_ids(axes)},
                )
        self.replace(op, emit.head(value, tensor_of(op.results[0]).get_shape()))

    def all_reduce(self, op: Operation) -> None:
        assert isinstance(op, partir.AllReduceOp)
        value = op.source
        made = self._collective(
            self.behind(op),
            stablehlo.AllReduceOp,
            value,
            tensor_of(value).get_shape(),
            self.properties.global_ids(op.axis_names),
            op.reducer.data,
        )
        self.replace(op, made)

    def reduce_scatter(self, op: Operation) -> None:
        assert isinstance(op, partir.ReduceScatterOp)
        result = tensor_of(op.results[0]).get_shape()
        whole = [size * self._tiles(axes) for size, axes in zip(result, op.dim_axes, strict=True)]
        emit = self.behind(op)
        value = emit.pad_tail(op.source, whole)
        for d, axes in enumerate(op.dim_axes):
            if axes:
                shape = list(tensor_of(value).get_shape())
                shape[d] = result[d]
                value = self._collective(
                    emit,
                    stablehlo.ReduceScatterOp,
                    value,
                    shape,
                    {"scatter_dimension": IntegerAttr(d, i64), **self.properties.global_ids(axes)},
                    op.reducer.data,
                )
        self.replace(op, value)

    def all_to_all(self, op: Operation) -> None:
        assert isinstance(op, partir.AllToAllOp)
        gathered, sliced = op.dims
        axes = op.axis_names
        groups = self.mesh.groups(axes)
        count = len(groups[0])
        emit, result = self.behind(op), tensor_of(op.results[0]).get_shape()
        shape = list(tensor_of(op.source).get_shape())
        shape[sliced] = result[sliced] * count
        value = emit.pad_tail(op.source, shape)
        shape[sliced] = result[sliced]
        shape[gathered] *= count
        properties: dict[str, Attribute] = {
            "split_dimension": IntegerAttr(sliced, i64),
            "concat_dimension": IntegerAttr(gathered, i64),
            "split_count": IntegerAttr(count, i64),
            "replica_groups": _dense(groups),
            "channel_handle": self.properties.channel,
        }
        made = self._collective(emit, stablehlo.AllToAllOp, value, shape, properties)
        self.replace(op, emit.head(made, result))

    def collective_permute(self, op: Operation) -> None:
        assert isinstance(op, partir.CollectivePermuteOp)
        properties: dict[str, Attribute] = {
            "source_target_pairs": _dense(op.pairs) if op.pairs else op.source_target_pairs,
            "channel_handle": self.properties.channel,
        }
        shape = tensor_of(op.source).get_shape()
        made = self._collective(
            self.behind(op), stablehlo.CollectivePermuteOp, op.source, shape, properties
        )
        self.replace(op, made)

    def _collective(
        self,
        emit: Emitter,
        cls: type[Operation],
        value: SSAValue,
        shape: Sequence[int],
        properties: dict[str, Attribute],
        reducer: str | None = None,
    ) -> SSAValue:
        element = tensor_of(value).element_type
        op = cls.create(
            operands=[value],
            result_types=[TensorType(element, shape)],
            properties=properties,
            regions=[reducer_region(reducer, element)] if reducer else [],
        )
        return emit.insert(op).results[0]


@dataclass
class _Properties:
    """Attributes of collectives, made once for each set of axes."""

    mesh: Mesh

    def __post_init__(self) -> None:
        self.channel = ChannelHandleAttr.of(handle=1, type=1)
        self._cache: dict[tuple[str, ...], dict[str, Attribute]] = {}

    def global_ids(self, axes: tuple[str, ...]) -> dict[str, Attribute]:
        """Groups over the axes, by global device number."""
        found = self._cache.get(axes)
        if found is None:
            found = self._cache[axes] = {
                "replica_groups": _dense(self.mesh.groups(axes)),
                "channel_handle": self.channel,
                "use_global_device_ids": UnitAttr(),
            }
        return found


_REWRITES: dict[str, Callable[[_Function, Operation], None]] = {
    "partir.axis_index": _Function.axis_index,
    "partir.replicate": _Function.identity,
    "partir.stop": _Function.identity,
    "partir.all_slice": _Function.all_slice,
    "partir.all_gather": _Function.all_gather,
    "partir.all_reduce": _Function.all_reduce,
    "partir.reduce_scatter": _Function.reduce_scatter,
    "partir.all_to_all": _Function.all_to_all,
    "partir.collective_permute": _Function.collective_permute,
}


@dataclass(frozen=True)
class ToStablehloPass(ModulePass):
    """Replaces the collectives by mesh axis with StableHLO's."""

    name = "partir-to-stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        to_stablehlo(op)
