"""The collectives of a device-local program, by mesh axis, and where a device is.

Every op takes and gives what one device holds. `axes` in `all_slice`, `all_gather` and
`reduce_scatter` has one list for each dimension: the axes that come to tile it (or cease to), major
to minor; they are the minor ones of all that tile the dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .mesh import Mesh
from .partir_attributes import check_reducer
from .partir_types import (
    Tensor,
    check_axes,
    check_dim,
    gathered_type,
    mesh_of,
    sliced_type,
    tensor,
)

AxesAttr = ArrayAttr[ArrayAttr[StringAttr]]
DimAxes = tuple[tuple[str, ...], ...]


def axes_attribute(axes: Sequence[Sequence[str]]) -> AxesAttr:
    """`[["batch"], []]` as an attribute."""
    return ArrayAttr([ArrayAttr([StringAttr(axis) for axis in dim]) for dim in axes])


def _dim_axes(attribute: AxesAttr) -> DimAxes:
    return tuple(tuple(axis.data for axis in dim.data) for dim in attribute.data)


def _check_dim_axes(axes: DimAxes, type_: Tensor, mesh: Mesh | None) -> None:
    if len(axes) != type_.get_num_dims():
        raise VerifyException(
            f"there is a list of axes for each dimension of {type_}, got: {len(axes)} lists"
        )
    names = [axis for dim in axes for axis in dim]
    if not names:
        raise VerifyException("a collective is over at least one axis")
    check_axes(names, mesh)


def _check_tile(op: Operation, whole: Tensor, axes: DimAxes, tile: Tensor) -> None:
    """`tile` is one tile of `whole` over `axes`."""
    mesh = mesh_of(op)
    _check_dim_axes(axes, whole, mesh)
    if mesh is not None and (wanted := sliced_type(whole, axes, mesh)) != tile:
        raise VerifyException(f"a tile of {whole} on the mesh {mesh} is {wanted}, got: {tile}")


def _check_element(reducer: str, type_: Tensor) -> None:
    check_reducer(reducer)
    if reducer in ("and", "or") and not isinstance(type_.get_element_type(), IntegerType):
        raise VerifyException(f"{reducer!r} combines integers, got: {type_}")


@irdl_op_definition
class AllSliceOp(IRDLOperation):
    """Every device keeps its tile of what all devices of a group hold; nothing is sent.

    ```mlir
    %1 = partir.all_slice %0 [["batch"], []] : tensor<256x8xf32> -> tensor<64x8xf32>
    ```
    """

    name = "partir.all_slice"
    source = operand_def()
    axes = prop_def(AxesAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$source $axes attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self,
        source: SSAValue,
        axes: Sequence[Sequence[str]],
        result_type: Attribute | Mesh,
    ) -> None:
        """With a mesh in place of the result type, the type is derived."""
        if isinstance(result_type, Mesh):
            result_type = sliced_type(tensor(source.type), axes, result_type)
        super().__init__(
            operands=[source],
            properties={"axes": axes_attribute(axes)},
            result_types=[result_type],
        )

    @property
    def dim_axes(self) -> DimAxes:
        """For each dimension the axes that come to tile it, major to minor."""
        return _dim_axes(self.axes)

    def verify_(self) -> None:
        _check_tile(self, tensor(self.source.type), self.dim_axes, tensor(self.result.type))


@irdl_op_definition
class AllGatherOp(IRDLOperation):
    """Every device gets the tiles of all devices of its group, joined in each dimension.

    ```mlir
    %1 = partir.all_gather %0 [["batch"], []] : tensor<64x8xf32> -> tensor<256x8xf32>
    ```

    A result smaller than all tiles together has lost the padding at the tail.
    """

    name = "partir.all_gather"
    source = operand_def()
    axes = prop_def(AxesAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$source $axes attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self,
        source: SSAValue,
        axes: Sequence[Sequence[str]],
        result_type: Attribute | Mesh,
    ) -> None:
        """With a mesh in place of the result type, the type is derived (padding included)."""
        if isinstance(result_type, Mesh):
            result_type = gathered_type(tensor(source.type), axes, result_type)
        super().__init__(
            operands=[source],
            properties={"axes": axes_attribute(axes)},
            result_types=[result_type],
        )

    @property
    def dim_axes(self) -> DimAxes:
        """For each dimension the axes that cease to tile it, major to minor."""
        return _dim_axes(self.axes)

    def verify_(self) -> None:
        _check_tile(self, tensor(self.result.type), self.dim_axes, tensor(self.source.type))


@irdl_op_definition
class AllReduceOp(IRDLOperation):
    """Every device gets the partial results of all devices of its group, combined.

    ```mlir
    %1 = partir.all_reduce "add" ["model"] %0 : tensor<64x8xf32>
    ```
    """

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "partir.all_reduce"
    reducer = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    source = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$reducer $axes $source attr-dict `:` type($source)"

    def __init__(self, source: SSAValue, reducer: str, axes: Sequence[str]) -> None:
        super().__init__(
            operands=[source],
            properties={
                "reducer": StringAttr(reducer),
                "axes": ArrayAttr([StringAttr(axis) for axis in axes]),
            },
            result_types=[source.type],
        )

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(axis.data for axis in self.axes)

    def verify_(self) -> None:
        _check_element(self.reducer.data, tensor(self.source.type))
        if not self.axes:
            raise VerifyException("a collective is over at least one axis")
        check_axes(self.axis_names, mesh_of(self))


@irdl_op_definition
class ReduceScatterOp(IRDLOperation):
    """Every device gets its tile of the partial results of its group, combined.

    ```mlir
    %1 = partir.reduce_scatter "add" [["batch"], []] %0 : tensor<256x8xf32> -> tensor<64x8xf32>
    ```
    """

    name = "partir.reduce_scatter"
    reducer = prop_def(StringAttr)
    axes = prop_def(AxesAttr)
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$reducer $axes $source attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self,
        source: SSAValue,
        reducer: str,
        axes: Sequence[Sequence[str]],
        result_type: Attribute | Mesh,
    ) -> None:
        """With a mesh in place of the result type, the type is derived."""
        if isinstance(result_type, Mesh):
            result_type = sliced_type(tensor(source.type), axes, result_type)
        super().__init__(
            operands=[source],
            properties={"reducer": StringAttr(reducer), "axes": axes_attribute(axes)},
            result_types=[result_type],
        )

    @property
    def dim_axes(self) -> DimAxes:
        """For each dimension the axes that come to tile it, major to minor."""
        return _dim_axes(self.axes)

    def verify_(self) -> None:
        _check_element(self.reducer.data, tensor(self.source.type))
        _check_tile(self, tensor(self.source.type), self.dim_axes, tensor(self.result.type))


@irdl_op_definition
class AllToAllOp(IRDLOperation):
    """The axes cease to tile `gather_dim` and come to tile `slice_dim`.

    ```mlir
    %1 = partir.all_to_all %0 {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64}
         : tensor<64x8xf32> -> tensor<128x4xf32>
    ```
    """

    name = "partir.all_to_all"
    source = operand_def()
    axes = prop_def(ArrayAttr[StringAttr])
    gather_dim = prop_def(IntegerAttr)
    slice_dim = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self,
        source: SSAValue,
        gather_dim: int,
        slice_dim: int,
        axes: Sequence[str],
        result_type: Attribute | Mesh,
    ) -> None:
        """With a mesh in place of the result type, the type is derived (padding included)."""
        if isinstance(result_type, Mesh):
            type_ = tensor(source.type)
            rank = type_.get_num_dims()
            whole = gathered_type(type_, _only(rank, gather_dim, axes), result_type)
            result_type = sliced_type(whole, _only(rank, slice_dim, axes), result_type)
        super().__init__(
            operands=[source],
            properties={
                "axes": ArrayAttr([StringAttr(axis) for axis in axes]),
                "gather_dim": IntegerAttr(gather_dim, i64),
                "slice_dim": IntegerAttr(slice_dim, i64),
            },
            result_types=[result_type],
        )

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(axis.data for axis in self.axes)

    @property
    def dims(self) -> tuple[int, int]:
        """The dimension that is gathered and the dimension that is sliced."""
        return self.gather_dim.value.data, self.slice_dim.value.data

    def verify_(self) -> None:
        source, result = tensor(self.source.type), tensor(self.result.type)
        gathered, sliced = self.dims
        check_dim(source, gathered, "an all_to_all gathers")
        check_dim(source, sliced, "an all_to_all slices")
        if gathered == sliced:
            raise VerifyException(f"an all_to_all is between two dimensions, got: {gathered} twice")
        if source.get_num_dims() != result.get_num_dims():
            raise VerifyException(f"an all_to_all keeps the rank of {source}, got: {result}")
        shape = list(source.get_shape())
        shape[gathered] = result.get_shape()[gathered]
        whole = TensorType(source.get_element_type(), shape)
        for dim, tile in ((gathered, source), (sliced, result)):
            _check_tile(self, whole, _only(len(shape), dim, self.axis_names), tile)


@irdl_op_definition
class CollectivePermuteOp(IRDLOperation):
    """Devices send what they hold to one another; who receives nothing gets zeros.

    ```mlir
    %1 = partir.collective_permute %0 {source_target_pairs = dense<[[0, 1], [1, 0]]>
         : tensor<2x2xi64>} : tensor<64x8xf32>
    ```
    """

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "partir.collective_permute"
    source = operand_def(T)
    source_target_pairs = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source)"

    def __init__(self, source: SSAValue, pairs: Sequence[tuple[int, int]]) -> None:
        """`pairs` are device numbers: who sends to whom."""
        flat = [device for pair in pairs for device in pair]
        super().__init__(
            operands=[source],
            properties={
                "source_target_pairs": DenseIntOrFPElementsAttr.from_list(
                    TensorType(i64, (len(pairs), 2)), flat
                )
            },
            result_types=[source.type],
        )

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Who sends to whom, by device number."""
        return tuple(_pairs(self.source_target_pairs))

    def verify_(self) -> None:
        shape = self.source_target_pairs.type.get_shape()
        if len(shape) != 2 or shape[1] != 2:
            raise VerifyException(f"source-target pairs are a list of pairs, got: {shape}")
        mesh = mesh_of(self)
        for side in zip(*self.pairs, strict=True):
            if len(set(side)) != len(side):
                raise VerifyException(f"a device sends and receives at most once, got: {side}")
            if mesh is not None and not all(0 <= device < mesh.devices for device in side):
                raise VerifyException(f"there are {mesh.devices} devices, got: {side}")


@irdl_op_definition
class AxisIndexOp(IRDLOperation):
    """The position of the device along a mesh axis.

    ```mlir
    %0 = partir.axis_index "batch" : tensor<i32>
    ```
    """

    name = "partir.axis_index"
    axis = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict `:` type($result)"

    def __init__(self, axis: str, result_type: Attribute | None = None) -> None:
        super().__init__(
            properties={"axis": StringAttr(axis)},
            result_types=[result_type or TensorType(i32, ())],
        )

    def verify_(self) -> None:
        check_axes((self.axis.data,), mesh_of(self))
        type_ = tensor(self.result.type)
        if type_.get_num_dims() or not isinstance(type_.get_element_type(), IntegerType):
            raise VerifyException(f"an axis index is an integer scalar, got: {type_}")


def _only(rank: int, dim: int, axes: Sequence[str]) -> DimAxes:
    """These axes on one dimension and none on the others."""
    return tuple(tuple(axes) if d == dim else () for d in range(rank))


def _pairs(attribute: DenseIntOrFPElementsAttr) -> Iterator[tuple[int, int]]:
    flat = cast("np.ndarray[tuple[int], np.dtype[np.int64]]", np.array(attribute.get_values()))
    for source, target in flat.reshape(-1, 2):
        yield int(source), int(target)


SPMD_OPS: list[type[Operation]] = [
    AllSliceOp,
    AllGatherOp,
    AllReduceOp,
    ReduceScatterOp,
    AllToAllOp,
    CollectivePermuteOp,
    AxisIndexOp,
]
