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
from xdsl.ir import Attribute, Region, SSAValue
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
    DYNAMIC,
    HloOp,
    Int,
    Tensor,
    Value,
    element_of,
    hlo_op,
    int64,
    int_of,
    same_types,
    shape_of,
    tensor_of,
    types_text,
    with_shape,
)
from .stablehlo_checks import (
    check_dim,
    check_length,
    check_reducer,
    check_region,
    check_result,
    scalar,
)
from .stablehlo_elementwise import check_same_types
from .stablehlo_outside_checks import check_global_ids, check_groups, check_pairs
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

    def verify_(self) -> None:
        check_result(self, self.result, (), _UI32.element_type)


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

    def verify_(self) -> None:
        check_result(self, self.result, (), _UI32.element_type)


def combined_element(op: HloOp, body: Region, operand: SSAValue) -> Attribute:
    """The elements that a collective's reducer makes of an operand; fails if it does not fit."""
    one = scalar(element_of(operand))
    return check_reducer(op, body, [operand.type], [one])[0]


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

    def verify_(self) -> None:
        check_groups(self, self.replica_groups, even=False)
        check_global_ids(self, self.use_global_device_ids, self.channel_handle, self.replica_groups)
        check_length(self, "results", self.result, len(self.operands_))
        for operand, result in zip(self.operands_, self.result, strict=True):
            element = combined_element(self, self.computation, operand)
            check_result(self, result, shape_of(operand), element)


def check_multiple(op: HloOp, dim: int, piece: int, whole: int) -> None:
    """Fails unless whole pieces make up the whole."""
    if piece == 0 or whole == 0:
        op.fail(f"dimension {dim} must not be empty, got: {0}")
    if DYNAMIC not in (piece, whole) and whole % piece:
        op.fail(f"dimension {dim} must be a multiple of {piece}, got: {whole}")


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

    def verify_(self) -> None:
        check_groups(self, self.replica_groups)
        check_global_ids(self, self.use_global_device_ids, self.channel_handle, self.replica_groups)
        dim = int_of(self.all_gather_dim)
        check_length(self, "results", self.result, len(self.operands_))
        for operand, result in zip(self.operands_, self.result, strict=True):
            shape = shape_of(operand)
            check_dim(self, "all_gather_dim", dim, len(shape))
            wanted = (*shape[:dim], DYNAMIC, *shape[dim + 1 :])
            check_result(self, result, wanted, element_of(operand))
            check_multiple(self, dim, shape[dim], shape_of(result)[dim])


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

    def verify_(self) -> None:
        check_groups(self, self.replica_groups)
        check_global_ids(self, self.use_global_device_ids, self.channel_handle, self.replica_groups)
        shape, dim = shape_of(self.operand), int_of(self.scatter_dimension)
        check_dim(self, "scatter_dimension", dim, len(shape))
        element = combined_element(self, self.computation, self.operand)
        wanted = (*shape[:dim], DYNAMIC, *shape[dim + 1 :])
        check_result(self, self.result, wanted, element)
        check_multiple(self, dim, shape_of(self.result)[dim], shape[dim])


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

    def verify_(self) -> None:
        count = int_of(self.split_count)
        if count < 1:
            self.fail(f"split_count must be at least 1, got: {count}")
        check_groups(self, self.replica_groups, size=count)
        split, concat = int_of(self.split_dimension), int_of(self.concat_dimension)
        check_length(self, "results", self.result, len(self.operands_))
        for operand, result in zip(self.operands_, self.result, strict=True):
            wanted = list(shape_of(operand))
            check_dim(self, "split_dimension", split, len(wanted))
            check_dim(self, "concat_dimension", concat, len(wanted))
            if wanted[split] != DYNAMIC:
                if wanted[split] % count:
                    self.fail(f"split_dimension must be in {count} parts, got: {wanted[split]}")
                wanted[split] //= count
            if wanted[concat] != DYNAMIC:
                wanted[concat] *= count
            check_result(self, result, wanted, element_of(operand))


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

    def verify_(self) -> None:
        check_pairs(self, self.source_target_pairs)
        check_same_types(self)


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

    def verify_(self) -> None:
        check_groups(self, self.replica_groups, complete=False)
        check_same_types(self)


@hlo_op
class CrossReplicaSumOp(HloOp):
    """An `all_reduce` that adds (older than it).

    `%r = "stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<[[0, 1]]> : …}> : …`
    """

    name = "stablehlo.cross-replica-sum"
    operand = operand_def(Tensor)
    replica_groups = prop_def()
    result = result_def(Tensor)

    def verify_(self) -> None:
        check_groups(self, self.replica_groups, even=False)
        check_same_types(self)


ASYNC_BODIES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute",
        "dynamic_slice", "dynamic_update_slice", "reduce_scatter", "slice",
    )
)  # fmt: skip
"""What an `async_start` can begin."""


@hlo_op
class AsyncStartOp(HloOp):
    """Begins the one collective in its body; `async_done` waits for it.

    `%f = "stablehlo.async_start"(%x) ({ … }) : (tensor<8xf32>) -> !stablehlo.future<tensor<8xf32>>`
    """

    name = "stablehlo.async_start"
    operands_ = var_operand_def()
    body = region_def()
    result = result_def(FutureType)

    def verify_(self) -> None:
        ops = list(self.body.blocks[0].ops) if self.body.blocks else []
        if len(ops) != 2:
            self.fail(f"body must have one op and a return, got: {len(ops)} op(s)")
        if ops[0].name not in ASYNC_BODIES:
            self.fail(f"body must be a collective or a slice, got: {ops[0].name}")
        future = self.result.type
        check_region(self, "body", self.body, self.operands_.types, future.types)


@hlo_op
class AsyncDoneOp(HloOp):
    """The values that an `async_start` began.

    `%r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>`
    """

    name = "stablehlo.async_done"
    operand = operand_def(FutureType)
    result = var_result_def()

    def verify_(self) -> None:
        future = self.operand.type
        wanted = future.types if isinstance(future, FutureType) else ()
        if not same_types(wanted, self.result.types):
            text = types_text(self.result.types)
            self.fail(f"results must be of types {types_text(wanted)}, got: {text}")


COLLECTIVE_OPS: list[type[HloOp]] = [
    PartitionIdOp, ReplicaIdOp, AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
    CollectivePermuteOp, CollectiveBroadcastOp, CrossReplicaSumOp, AsyncStartOp, AsyncDoneOp,
]  # fmt: skip
