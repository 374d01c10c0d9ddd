"""Which types a tile, a slice or a gather has, and which mesh a module is written for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from .errors import MeshError
from .mesh import Mesh
from .partir_attributes import MeshAttr

MESH = "partir.mesh"  # on the module: #partir.mesh
FORM = "partir.form"  # on the module: "nests" says that every op has a nest
NEST = "partir.nest"  # on an op, an argument or a result in nest form: #partir.nest
CARRIES = "partir.carries"  # on a while, case or if: one #partir.nest for each result
BORDER = "partir.border"  # on main's arguments and results of an SPMD module: a string

Tensor = TensorType[Any]


def mesh_of(op: Operation) -> Mesh | None:
    """The mesh of the module that holds `op` (or is `op`), or None if it names none."""
    where: Operation | None = op
    while where is not None:
        attribute = where.attributes.get(MESH) if isinstance(where, ModuleOp) else None
        if isinstance(attribute, MeshAttr):
            return attribute.data
        where = where.parent_op()
    return None


def elements(attribute: Attribute | None) -> tuple[Attribute, ...]:
    """The elements of an array attribute; none of anything else."""
    if not isinstance(attribute, ArrayAttr):
        return ()
    return cast("ArrayAttr[Attribute]", attribute).data


def tensor(type_: Attribute) -> Tensor:
    """`type_` as a ranked tensor type of static shape; raises `VerifyException` if it is none."""
    if not isinstance(type_, TensorType) or -1 in type_.get_shape():
        raise VerifyException(f"a ranked tensor of static shape is needed, got: {type_}")
    return cast("Tensor", type_)


def with_shape(type_: Tensor, shape: Iterable[int]) -> Tensor:
    """The tensor type of that shape with the element type of `type_`."""
    return TensorType(type_.get_element_type(), tuple(shape), type_.encoding)


def tiled_type(type_: Tensor, dim: int, size: int) -> Tensor:
    """The type of one of `size` tiles along dimension `dim`: ceil(extent / size) elements."""
    shape = list(type_.get_shape())
    shape[dim] = -(-shape[dim] // size)
    return with_shape(type_, shape)


def check_dim(type_: Tensor, dim: int, what: str) -> None:
    """Raises `VerifyException` unless `type_` has the dimension `dim`."""
    if not 0 <= dim < type_.get_num_dims():
        raise VerifyException(f"{what} a dimension that does not exist in {type_}, got: {dim}")


def axis_size(mesh: Mesh, axis: str) -> int:
    """The size of `axis`; raises `VerifyException` if the mesh has no such axis."""
    try:
        return mesh.size(axis)
    except MeshError as error:
        hint = f"; did you mean {error.nearest!r}?" if error.nearest else ""
        raise VerifyException(f"{error.message}, the mesh is {mesh}{hint}") from error


def check_axes(axes: Sequence[str], mesh: Mesh | None) -> None:
    """Raises `VerifyException` unless the axes differ and are all in the mesh (if there is one)."""
    for position, axis in enumerate(axes):
        if axis in axes[:position]:
            raise VerifyException(f"an axis is named at most once, got: {axis!r} twice")
        if mesh is not None:
            axis_size(mesh, axis)


def sliced_type(type_: Tensor, axes: Sequence[Sequence[str]], mesh: Mesh) -> Tensor:
    """The type after tiling each dimension d by the axes in `axes[d]`."""
    shape = list(type_.get_shape())
    for dim, names in enumerate(axes):
        for name in names:
            shape[dim] = -(-shape[dim] // axis_size(mesh, name))
    return with_shape(type_, shape)


def gathered_type(type_: Tensor, axes: Sequence[Sequence[str]], mesh: Mesh) -> Tensor:
    """The type after joining the tiles over `axes[d]` in each dimension d, padding included."""
    shape = list(type_.get_shape())
    for dim, names in enumerate(axes):
        for name in names:
            shape[dim] *= axis_size(mesh, name)
    return with_shape(type_, shape)
