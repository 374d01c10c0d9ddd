"""Which StableHLO ops speak between devices?"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    Signedness,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Region
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
from xdsl.traits import Pure

from .stablehlo_attrs import ChannelHandleAttr, FutureType
from .stablehlo_base import (
    HloOp,
    Int,
    Tensor,
    Value,
    hlo_op,
    int64,
    tensor_of,
    with_shape,
)
from .stablehlo_reduction import combiner_region

Groups = Sequence[Sequence[int]]
"""Device numbers, one list for each group; the order in a group is the order of the pieces."""

DEVICE_CHANNEL = ChannelHandleAttr.of(handle=1, type=1)
"""The channel that XLA wants on a collective between devices."""


def groups_attr(groups: Groups) -> DenseIntOrFPElementsAttr[IntegerType]:
    """`dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; short groups are filled with -1."""
    width = max(map(len, groups), default=0)
    flat = [n for group in groups for n in (*group, *(-1 for _ in range(width - len(group))))]
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(groups), width]), flat)


_UI32 = TensorType(IntegerType(32, Signedness.UNSIGNED), [])


def _global(groups: Groups) -> dict[str, Attribute]:
    """The properties of a collective over devices numbered through all partitions."""
    return {
        "replica_groups": groups_attr(groups),
        "channel_handle": DEVICE_CHANNEL,
        "use_global_device_ids": UnitAttr(),
    }


def _body(body: str | Region, element_type: Attribute) -> Region:
    return combiner_region(body, element_type) if isinstance(body, str) else body


@hlo_op
class PartitionIdOp(HloOp):
    """Which partition this device is, as a ui32.

    `%p = stablehlo.partition_id : tensor<ui32>`
    """

    name = "stablehlo.partition_id"
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[_UI32])


@hlo_op
class ReplicaIdOp(HloOp):
    """Which replica this device is, as a ui32.

    `%r = stablehlo.replica_id : tensor<ui32>`
    """

    name = "stablehlo.replica_id"
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[_UI32])


@hlo_op
class AllReduceOp(HloOp):
    """Combines the tensors of all devices of a group; all get the result.

    `%r = "stablehlo.all_reduce"(%x) <{replica_groups = …, use_global_device_ids}> ({ … }) : …`
    """

    name = "stablehlo.all_reduce"
    operands_ = var_operand_def(Tensor)
    replica_groups = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()
    result = var_result_def(Tensor)

    def __init__(self, operand: Value, groups: Groups, body: str | Region = "add") -> None:
        type_ = tensor_of(operand)
        super().__init__(
            operands=[[operand]],
            result_types=[[type_]],
            properties=_global(groups),
            regions=[_body(body, type_.element_type)],
        )


@hlo_op
class AllGatherOp(HloOp):
    """Puts the tensors of a group one after the other; all get the result.

    `%r = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = …}> : …`
    """

    name = "stablehlo.all_gather"
    operands_ = var_operand_def(Tensor)
    all_gather_dim = prop_def(Int)
    replica_groups = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    result = var_result_def(Tensor)

    def __init__(self, operand: Value, dim: int, groups: Groups) -> None:
        type_ = tensor_of(operand)
        shape = list(type_.get_shape())
        shape[dim] *= len(groups[0])
        super().__init__(
            operands=[[operand]],
            result_types=[[with_shape(type_, shape)]],
            properties={"all_gather_dim": int64(dim), **_global(groups)},
        )


@hlo_op
class ReduceScatterOp(HloOp):
    """Combines the tensors of a group; each device gets its piece along a dimension.

    `%r = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, …}> ({ … }) : …`
    """

    name = "stablehlo.reduce_scatter"
    operand = operand_def(Tensor)
    scatter_dimension = prop_def(Int)
    replica_groups = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()
    result = result_def(Tensor)

    def __init__(
        self, operand: Value, dim: int, groups: Groups, body: str | Region = "add"
    ) -> None:
        type_ = tensor_of(operand)
        shape = list(type_.get_shape())
        shape[dim] //= len(groups[0])
        super().__init__(
            operands=[operand],
            result_types=[with_shape(type_, shape)],
            properties={"scatter_dimension": int64(dim), **_global(groups)},
            regions=[_body(body, type_.element_type)],
        )


@hlo_op
class AllToAllOp(HloOp):
    """Cuts along one dimension, sends each piece to its device, joins along another.

    `%r = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, …}> : …`
    """

    name = "stablehlo.all_to_all"
    operands_ = var_operand_def(Tensor)
    split_dimension = prop_def(Int)
    concat_dimension = prop_def(Int)
    split_count = prop_def(Int)
    replica_groups = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = var_result_def(Tensor)

    def __init__(self, operand: Value, split: int, concat: int, groups: Groups) -> None:
        type_ = tensor_of(operand)
        shape = list(type_.get_shape())
        shape[split] //= len(groups[0])
        shape[concat] *= len(groups[0])
        super().__init__(
            operands=[[operand]],
            result_types=[[with_shape(type_, shape)]],
            properties={
                "split_dimension": int64(split),
                "concat_dimension": int64(concat),
                "split_count": int64(len(groups[0])),
                "replica_groups": groups_attr(groups),
                "channel_handle": DEVICE_CHANNEL,
            },
        )


@hlo_op
class CollectivePermuteOp(HloOp):
    """Each pair sends from the first device to the second; who receives nothing gets zeros.

    `%r = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : …}> : …`
    """

    name = "stablehlo.collective_permute"
    operand = operand_def(Tensor)
    source_target_pairs = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = result_def(Tensor)

    def __init__(self, operand: Value, pairs: Groups) -> None:
        flat = [number for pair in pairs for number in pair]
        table = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), flat)
        super().__init__(
            operands=[operand],
            result_types=[tensor_of(operand)],
            properties={"source_target_pairs": table, "channel_handle": DEVICE_CHANNEL},
        )


@hlo_op
class CollectiveBroadcastOp(HloOp):
    """The first device of a group sends to all of it.

    `%r = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1]]> : …}> : …`
    """

    name = "stablehlo.collective_broadcast"
    operand = operand_def(Tensor)
    replica_groups = prop_def()
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = result_def(Tensor)


@hlo_op
class CrossReplicaSumOp(HloOp):
    """An `all_reduce` that adds (older than it).

    `%r = "stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<[[0, 1]]> : …}> : …`
    """

    name = "stablehlo.cross-replica-sum"
    operand = operand_def(Tensor)
    replica_groups = prop_def()
    result = result_def(Tensor)


@hlo_op
class AsyncStartOp(HloOp):
    """Begins the one collective in its body; `async_done` waits for it.

    `%f = "stablehlo.async_start"(%x) ({ … }) : (tensor<8xf32>) -> !stablehlo.future<tensor<8xf32>>`
    """

    name = "stablehlo.async_start"
    operands_ = var_operand_def()
    body = region_def()
    result = result_def(FutureType)


@hlo_op
class AsyncDoneOp(HloOp):
    """The values that an `async_start` began.

    `%r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>`
    """

    name = "stablehlo.async_done"
    operand = operand_def(FutureType)
    result = var_result_def()


COLLECTIVE_OPS: list[type[HloOp]] = [
    PartitionIdOp, ReplicaIdOp, AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
    CollectivePermuteOp, CollectiveBroadcastOp, CrossReplicaSumOp, AsyncStartOp, AsyncDoneOp,
]  # fmt: skip
