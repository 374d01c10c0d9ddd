"""When does a sharding fit its mesh and its tensor, and a collective its shardings?

An axis reference is taken as an interval of its axis: `"x":(2)4` covers the factors from 2 to 8.
Failures are `VerifyException`s whose message ends in the value at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import NoReturn, cast

from xdsl.dialects.builtin import ModuleOp, TensorType, UnregisteredAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from .sdy_attrs import MeshAttr, OpShardingRuleAttr, ShardingAttr, ShardingPerValueAttr
from .sdy_values import AxisRef, MeshValue, Sharding, ShardingRule, axes_text, factor_text

Fail = Callable[[str], NoReturn]


def fail(message: str) -> NoReturn:
    """Raises `VerifyException`."""
    raise VerifyException(message)


# --- meshes --------------------------------------------------------------------------------


def check_mesh(mesh: MeshValue, fail: Fail = fail) -> None:
    """Fails unless axes have one name and a positive size each, and devices fit."""
    names = [name for name, _ in mesh.axes]
    for name, size in mesh.axes:
        if size < 1:
            fail(f"axis size must be at least 1, got: {size}")
        if names.count(name) > 1:
            fail(f"axis named twice in the mesh: {name}")
    if not mesh.device_ids:
        return
    if not mesh.axes:
        if len(mesh.device_ids) != 1 or mesh.device_ids[0] < 0:
            fail(f"a mesh without axes has one device, got: {list(mesh.device_ids)}")
    elif sorted(mesh.device_ids) != list(range(mesh.device_count)):
        fail(f"devices must be 0 to {mesh.device_count - 1}, got: {list(mesh.device_ids)}")


def mesh_of(op: Operation, sharding: Sharding) -> MeshValue | None:
    """The mesh that a sharding on this op speaks of; None if its symbol is not defined.

    An op outside a module knows no symbols.
    """
    if isinstance(sharding.mesh, MeshValue):
        return sharding.mesh
    top: Operation | None = op
    while top is not None and not isinstance(top, ModuleOp):
        top = top.parent_op()
    for candidate in top.ops if top is not None else ():
        mesh = candidate.properties.get("mesh")
        if isinstance(mesh, MeshAttr) and candidate.name == "sdy.mesh":
            symbol = candidate.properties.get("sym_name")
            if str(getattr(symbol, "data", "")) == sharding.mesh:
                return mesh.data
    return None


# --- axis references -----------------------------------------------------------------------


def interval(axis: AxisRef, mesh: MeshValue) -> tuple[int, int]:
    """Which factors of its axis a reference covers: from, to."""
    if axis.size is None:
        return 1, mesh.size(axis.name)
    before = axis.before or 1
    return before, before * axis.size


def overlap(a: AxisRef, b: AxisRef, mesh: MeshValue) -> bool:
    """Whether two references share a factor."""
    if a.name != b.name:
        return False
    (start, end), (other, last) = interval(a, mesh), interval(b, mesh)
    return a == b or (start < last and other < end)


def _check_axis(axis: AxisRef, mesh: MeshValue, fail: Fail) -> None:
    sizes = dict(mesh.axes)
    if axis.name not in sizes:
        fail(f"unknown axis name: {axis}")
    if axis.size is None:
        return
    before, whole = axis.before or 0, sizes[axis.name]
    if before < 1 or axis.size < 2:
        fail(f"a sub-axis must have a size above 1 after one of at least 1, got: {axis}")
    if whole % (before * axis.size) or axis.size >= whole:
        fail(f"a sub-axis must divide and be less than {axis.name}={whole}, got: {axis}")


def check_axes(
    axes: Sequence[AxisRef], mesh: MeshValue, fail: Fail = fail, *, ordered: bool = False
) -> None:
    """Fails unless all are known, none overlaps another, and none goes on from the one before.

    `ordered`: they must be in the order of the mesh too.
    """
    for position, axis in enumerate(axes):
        _check_axis(axis, mesh, fail)
        for other in axes[:position]:
            if overlap(axis, other, mesh):
                fail(f"axis used twice: {axis}")
        if position and goes_on(axes[position - 1], axis, mesh):
            fail(f"sub-axes can be merged: {axes[position - 1]}, {axis}")
    if ordered and list(axes) != sorted(axes, key=lambda axis: mesh_order(axis, mesh)):
        fail(f"axes must be in the order of the mesh, got: {axes_text(tuple(axes))}")


def goes_on(first: AxisRef, second: AxisRef, mesh: MeshValue) -> bool:
    """Whether the second is the part of the same axis that comes right after the first."""
    if first.name != second.name or first.size is None or second.size is None:
        return False
    return interval(first, mesh)[1] == interval(second, mesh)[0]


def mesh_order(axis: AxisRef, mesh: MeshValue) -> tuple[int, int]:
    """Where a reference stands in the mesh."""
    names = [name for name, _ in mesh.axes]
    return names.index(axis.name), axis.before or 1


# --- shardings -----------------------------------------------------------------------------


def check_sharding(
    op: Operation, sharding: Sharding, type_: Attribute | None, fail: Fail = fail
) -> None:
    """Fails unless the sharding fits its mesh and a tensor of this type (None: of any)."""
    mesh = mesh_of(op, sharding)
    if mesh is None:
        fail(f"unknown mesh: @{sharding.mesh}")
    if isinstance(sharding.mesh, MeshValue):
        check_mesh(mesh, fail)
    _check_rank(sharding, mesh, type_, fail)
    used: list[AxisRef] = []
    for dim in sharding.dims:
        if dim.priority is not None and not dim.axes and not dim.is_open:
            fail(f"a closed dimension without axes must have no priority, got: {dim}")
        check_axes(dim.axes, mesh, fail)
        used.extend(dim.axes)
    for axes in (sharding.replicated, sharding.unreduced):
        check_axes(axes, mesh, fail, ordered=True)
        used.extend(axes)
    for position, axis in enumerate(used):
        if any(overlap(axis, other, mesh) for other in used[:position]):
            fail(f"axis used twice: {axis}")


def rank_of(type_: Attribute) -> int:
    """How many dimensions a type has: none if it is no ranked tensor."""
    tensor = isinstance(type_, TensorType)
    return len(cast(TensorType[Attribute], type_).shape.data) if tensor else 0


def _check_rank(sharding: Sharding, mesh: MeshValue, type_: Attribute | None, fail: Fail) -> None:
    if mesh.is_maximal or not mesh.axes:
        if sharding.axes_used():
            fail(f"a mesh of one device has no axes, got: {sharding}")
        if mesh.is_maximal:
            return
    if isinstance(type_, TensorType):
        rank = rank_of(cast(Attribute, type_))
        if sharding.rank != rank:
            fail(f"sharding must have rank {rank}, got: {sharding.rank}")
    elif isinstance(type_, UnregisteredAttr):
        return  # which may well be a tensor to others
    elif type_ is not None and (sharding.rank or sharding.replicated or sharding.unreduced):
        fail(f"what is no tensor has a sharding of rank 0, got: {sharding}")


def check_shardings(
    op: Operation,
    shardings: Sequence[Sharding],
    types: Sequence[Attribute | None],
    fail: Fail = fail,
) -> None:
    """Fails unless there is a fitting sharding for each type."""
    if not types and len(shardings) == 1:  # an op without results may have one all the same
        types = [None]
    if len(shardings) != len(types):
        fail(f"there must be {len(types)} sharding(s), got: {len(shardings)}")
    for sharding, type_ in zip(shardings, types, strict=True):
        check_sharding(op, sharding, type_, fail)


def check_sharding_attribute(op: Operation, attr: Attribute, fail: Fail = fail) -> None:
    """Fails unless a `sdy.sharding` among an op's attributes fits the op's results."""
    types = [value.type for value in op.results]
    if isinstance(attr, ShardingPerValueAttr):
        check_shardings(op, attr.data, types, fail)
    elif isinstance(attr, ShardingAttr):
        if len(types) > 1:
            fail(f"there must be {len(types)} shardings, got: {attr}")
        check_sharding(op, attr.data, types[0] if types else None, fail)
    else:
        fail(f"sdy.sharding must be a sharding for each result, got: {attr}")


def check_rule_attribute(op: Operation, attr: Attribute, fail: Fail = fail) -> None:
    """Fails unless a `sdy.sharding_rule` maps every dimension of the op's tensors to factors."""
    if not isinstance(attr, OpShardingRuleAttr):
        fail(f"sdy.sharding_rule must be a rule, got: {attr}")
    rule = attr.data
    sides = (("operand", op.operands, rule.operands), ("result", op.results, rule.results))
    for what, values, mappings in sides:
        if len(mappings) != len(values):
            fail(f"the rule must map {len(values)} {what}(s), got: {len(mappings)}")
        for value, dims in zip(values, mappings, strict=True):
            rank = rank_of(value.type)
            if len(dims) != rank:
                fail(f"the rule must map {rank} dimension(s) of {value.type}, got: {len(dims)}")
            for dim in dims:
                _check_factors(dim, rule, fail)


def _check_factors(dim: tuple[int, ...], rule: ShardingRule, fail: Fail) -> None:
    for factor in dim:
        if factor >= len(rule.sizes):
            fail(f"a factor must have a size, got: {factor_text(factor)}")
        if len(dim) > 1 and rule.sizes[factor] == 1:
            fail(f"a factor among others must not have size 1, got: {factor_text(factor)}")


def check_function_shardings(function: FuncOp, fail: Fail = fail) -> None:
    """Fails unless the `sdy.sharding` of every argument and result of a function fits it."""
    type_ = function.function_type
    sides = ((function.arg_attrs, type_.inputs.data), (function.res_attrs, type_.outputs.data))
    for attrs, types in sides:
        for entry, value_type in zip(attrs.data if attrs is not None else (), types, strict=False):
            attr = entry.data.get("sdy.sharding")
            if isinstance(attr, ShardingAttr):
                check_sharding(function, attr.data, value_type, fail)
            elif attr is not None:
                fail(f"sdy.sharding must be one sharding here, got: {attr}")


def sharding_of(value: SSAValue) -> Sharding | None:
    """The sharding that a value has been given, if any.

    Where: on the op that makes it, or on the argument of the function.
    """
    if isinstance(value, BlockArgument):
        return _argument_sharding(value)
    op, index = cast(Operation, value.owner), cast("int", getattr(value, "index", 0))
    attr = op.attributes.get("sdy.sharding")
    if isinstance(attr, ShardingPerValueAttr):
        return attr.data[index] if index < len(attr.data) else None
    for key in ("out_sharding", "sharding"):
        found = op.properties.get(key) if op.name.startswith("sdy.") else None
        if isinstance(found, ShardingAttr):
            return found.data
    outs = op.properties.get("out_shardings")
    if isinstance(outs, ShardingPerValueAttr) and index < len(outs.data):
        return outs.data[index]
    return None


def _argument_sharding(value: BlockArgument) -> Sharding | None:
    owner = value.block.parent_op()
    if owner is None:
        return None
    ins = owner.properties.get("in_shardings")
    if isinstance(ins, ShardingPerValueAttr):
        return ins.data[value.index] if value.index < len(ins.data) else None
    attrs = owner.properties.get("arg_attrs")
    entries = cast("Sequence[Attribute]", getattr(attrs, "data", ()))
    if value.index >= len(entries):
        return None
    table = cast("dict[str, Attribute]", getattr(entries[value.index], "data", {}))
    found = table.get("sdy.sharding")
    return found.data if isinstance(found, ShardingAttr) else None


# --- what collectives do to a sharding -----------------------------------------------------

Axes = tuple[AxisRef, ...]
Pieces = list[tuple[str, int, int]]


def split_axes(axes: Iterable[AxisRef], mesh: MeshValue) -> Pieces:
    """References as (axis, from, to), those that go on from one another joined."""
    out: Pieces = []
    for axis in axes:
        start, end = interval(axis, mesh)
        if out and out[-1][0] == axis.name and out[-1][2] == start:
            out[-1] = (axis.name, out[-1][1], end)
        else:
            out.append((axis.name, start, end))
    return out


def same_axes(a: Iterable[AxisRef], b: Iterable[AxisRef], mesh: MeshValue) -> bool:
    """Whether two lists cover the same factors in the same order."""
    return split_axes(a, mesh) == split_axes(b, mesh)


def without_suffix(axes: Axes, suffix: Iterable[AxisRef], mesh: MeshValue) -> Pieces | None:
    """The axes that are left when the last ones are taken off; None if those are not the last."""
    left, taken = split_axes(axes, mesh), split_axes(suffix, mesh)
    while taken:
        name, start, end = taken.pop()
        if not left or left[-1][0] != name or left[-1][2] != end or left[-1][1] > start:
            return None
        _, first, _ = left.pop()
        if first < start:
            left.append((name, first, start))
    return left


def pieces(axes: Iterable[AxisRef], mesh: MeshValue) -> int:
    """In how many pieces a dimension is cut by these axes."""
    return prod(axis.size_on(mesh) for axis in axes)


def joined(before: Pieces, axes: Axes, mesh: MeshValue) -> Pieces:
    """Axes put after others."""
    out = list(before)
    for name, start, end in split_axes(axes, mesh):
        if out and out[-1][0] == name and out[-1][2] == start:
            out[-1] = (name, out[-1][1], end)
        else:
            out.append((name, start, end))
    return out


def check_bound_axes(op: Operation, axes: Iterable[AxisRef], fail: Fail = fail) -> None:
    """Fails if an axis is manual in a `manual_computation` around the op."""
    names = {axis.name for axis in axes}
    parent = op.parent_op()
    while parent is not None:
        manual = parent.properties.get("manual_axes")
        bound = {axis.name for axis in cast("Axes", getattr(manual, "data", ()))}
        for name in sorted(names & bound):
            fail(f"axis is manual in a computation around this: {name}")
        parent = parent.parent_op()
