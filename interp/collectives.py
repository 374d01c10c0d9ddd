"""What collectives mean on a simulated mesh: every device's value in, every device's value out.

A collective waits for all members of its group. When only some of them reach it (the others took
another branch, or left the loop) it is reported as a deadlock. StableHLO's collectives number
devices by replica and partition; partir's name mesh axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..partir_dialect.mesh import Mesh
from . import numbers
from .attributes import find, integer, integers, need, result_shape, shape_of, text, values, word
from .bodies import Body
from .compiler import Column, Compiler, Context, Lanes, Token
from .faults import DeadlockError, InterpreterError
from .grid import Groups, grid_of, replica_groups
from .loops import combine, extend, join, tile
from .registry import Array, communicates

Exchange = Callable[..., list[Column]]
Group = tuple[int, ...]


def arrived(op: Operation, groups: Sequence[Group], lanes: Lanes) -> list[Group]:
    """The groups whose members are all there; raises `DeadlockError` if one is split."""
    present = set(lanes)
    complete: list[Group] = []
    for group in groups:
        missing = [device for device in group if device not in present]
        if not missing:
            complete.append(group)
        elif len(missing) < len(group):
            here = [device for device in group if device in present]
            raise DeadlockError(
                f"deadlock: {op.name} is reached by devices {here} of the group {list(group)}, "
                f"but not by {missing}"
            )
    return complete


def _covered(op: Operation, groups: Sequence[Group], lanes: Lanes) -> None:
    members = {device for group in groups for device in group}
    alone = [lane for lane in lanes if lane not in members]
    if alone:
        raise InterpreterError(f"{op.name} has no group for the devices {alone}")


def per_group(
    op: Operation,
    groups: Sequence[Group],
    devices: int,
    compute: Callable[[list[Any]], Sequence[Any]],
) -> Exchange:
    """Applies `compute`, from the members' values to the members' results, in every group."""

    def exchange(lanes: Lanes, *columns: Column) -> list[Column]:
        _covered(op, groups, lanes)
        results: list[Column] = [[None] * devices for _ in columns]
        for group in arrived(op, groups, lanes):
            for source, target in zip(columns, results, strict=True):
                outcome = compute([source[device] for device in group])
                for device, value in zip(group, outcome, strict=True):
                    target[device] = value
        return results

    return exchange


def same(column: Column) -> Exchange:
    """An op whose result is known beforehand for every device."""

    def exchange(lanes: Lanes) -> list[Column]:
        return [column]

    return exchange


def shared(results: Any, count: int) -> list[Any]:
    """The same value for every member of a group."""
    return [results] * count


# ----------------------------------------------------------------------------- StableHLO


def _groups(op: Operation, compiler: Compiler) -> Groups:
    return replica_groups(op, grid_of(compiler.program))


def _reducer(body: Body) -> Callable[[list[Array]], Array]:
    """Combines the members' values with the body, in group order."""
    ufunc = body.ufunc

    def reduce(members: list[Array]) -> Array:
        if ufunc is None:
            total = members[0]
            for value in members[1:]:
                (total,) = body(total, value)
            return total
        wide = numbers.wide(members[0].dtype)
        total = members[0].astype(wide)
        for value in members[1:]:
            total = ufunc(total, value.astype(wide))
        return numbers.narrow(np.asarray(total), members[0].dtype)

    return reduce


def _body(op: Operation, compiler: Compiler) -> Body:
    return Context(compiler.program).body(op.regions[0])


@communicates("stablehlo.all_reduce", "stablehlo.cross-replica-sum")
def _all_reduce(op: Operation, compiler: Compiler) -> Exchange:
    reduce: Callable[[list[Array]], Array]
    reduce = (
        _reducer(_body(op, compiler)) if op.regions else lambda members: combine("add", members)
    )
    groups, devices = _groups(op, compiler), compiler.program.devices
    return per_group(op, groups, devices, lambda members: shared(reduce(members), len(members)))


@communicates("stablehlo.all_gather")
def _all_gather(op: Operation, compiler: Compiler) -> Exchange:
    dimension = integer(op, "all_gather_dim")
    groups, devices = _groups(op, compiler), compiler.program.devices

    def gather(members: list[Array]) -> list[Array]:
        return shared(np.concatenate(members, axis=dimension), len(members))

    return per_group(op, groups, devices, gather)


@communicates("stablehlo.reduce_scatter")
def _reduce_scatter(op: Operation, compiler: Compiler) -> Exchange:
    dimension, reduce = integer(op, "scatter_dimension"), _reducer(_body(op, compiler))
    groups, devices = _groups(op, compiler), compiler.program.devices

    def scatter(members: list[Array]) -> list[Array]:
        return np.split(reduce(members), len(members), axis=dimension)

    return per_group(op, groups, devices, scatter)


@communicates("stablehlo.all_to_all")
def _all_to_all(op: Operation, compiler: Compiler) -> Exchange:
    split, concat = integer(op, "split_dimension"), integer(op, "concat_dimension")
    count = integer(op, "split_count")
    groups, devices = _groups(op, compiler), compiler.program.devices

    def exchange(members: list[Array]) -> list[Array]:
        if len(members) != count:
            raise InterpreterError(
                f"split_count is the size of a group, {len(members)}, got: {count}"
            )
        parts = [np.split(member, count, axis=split) for member in members]
        return [np.concatenate([p[k] for p in parts], axis=concat) for k in range(count)]

    return per_group(op, groups, devices, exchange)


@communicates("stablehlo.collective_broadcast")
def _collective_broadcast(op: Operation, compiler: Compiler) -> Exchange:
    if find(op, "has_dynamic_root") is not None:
        raise InterpreterError(f"{op.name} with a root that is an operand is not supported")
    groups, devices = _groups(op, compiler), compiler.program.devices
    inner = per_group(op, groups, devices, lambda members: shared(members[0], len(members)))
    members = {device for group in groups for device in group}

    def exchange(lanes: Lanes, *columns: Column) -> list[Column]:
        within = [lane for lane in lanes if lane in members]
        results = inner(within, *columns)
        for source, target in zip(columns, results, strict=True):
            for lane in lanes:
                if lane not in members:
                    target[lane] = np.zeros_like(source[lane])
        return results

    return exchange


def permute(op: Operation, pairs: Sequence[tuple[int, int]], devices: int) -> Exchange:
    """Sends values along (source, target) pairs; who receives nothing gets zeros."""
    everyone = [tuple(range(devices))]

    def exchange(lanes: Lanes, *columns: Column) -> list[Column]:
        arrived(op, everyone, lanes)
        results: list[Column] = []
        for column in columns:
            target: Column = [None] * devices
            for source, destination in pairs:
                target[destination] = column[source]
            nothing = np.zeros_like(column[0])
            results.append([nothing if value is None else value for value in target])
        return results

    return exchange


@communicates("stablehlo.collective_permute")
def _collective_permute(op: Operation, compiler: Compiler) -> Exchange:
    table = values(need(op, "source_target_pairs")).reshape(-1, 2).tolist()
    grid = grid_of(compiler.program)
    pairs = [
        (source, target)
        for pair in table
        for source, target in zip(*(grid.spread(op, number) for number in pair), strict=True)
    ]
    return permute(op, pairs, compiler.program.devices)


@communicates("stablehlo.partition_id", "stablehlo.replica_id")
def _own_number(op: Operation, compiler: Compiler) -> Exchange:
    grid, devices = grid_of(compiler.program), compiler.program.devices
    number = grid.partition if op.name == "stablehlo.partition_id" else grid.replica
    ids = [np.array(number(device), np.uint32) for device in range(devices)]
    return same(ids)


@communicates("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")
def _host(op: Operation, compiler: Compiler) -> Exchange:
    raise InterpreterError(f"no interpretation for communication with the host: {op.name!r}")


# ----------------------------------------------------------------------------- partir


def _mesh(op: Operation, compiler: Compiler) -> Mesh:
    mesh = compiler.program.mesh
    if mesh is None:
        raise InterpreterError(f"{op.name} needs a mesh: run the module with `run_spmd`")
    return mesh


def _strings(op: Operation, name: str) -> tuple[str, ...]:
    return tuple(word(item) for item in need(op, name).data)


def _lists(op: Operation) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(word(item) for item in dim.data) for dim in need(op, "axes").data)


def _cut(a: Array, device: int, axes: Sequence[Sequence[str]], mesh: Mesh) -> Array:
    """The tile of a device: each dimension axis by axis, major to minor."""
    for dimension, names in enumerate(axes):
        for name in names:
            a = tile(a, dimension, mesh.size(name), mesh.coordinate(device, name))
    return a


def _gather_axis(
    op: Operation, column: Column, lanes: Lanes, mesh: Mesh, name: str, dimension: int, size: int
) -> Column:
    """Joins the tiles along one axis in one dimension of `size` elements after joining."""
    result: Column = [None] * mesh.devices
    for group in arrived(op, mesh.groups((name,)), lanes):
        whole = join([column[device] for device in group], dimension, size)
        for device in group:
            result[device] = whole
    return result


def _gather(
    op: Operation,
    column: Column,
    lanes: Lanes,
    mesh: Mesh,
    axes: Sequence[Sequence[str]],
    shape: Sequence[int],
) -> Column:
    for dimension, names in enumerate(axes):
        sizes = [shape[dimension]]
        for name in names:
            sizes.append(-(-sizes[-1] // mesh.size(name)))
        for name, size in zip(reversed(names), reversed(sizes[:-1]), strict=True):
            column = _gather_axis(op, column, lanes, mesh, name, dimension, size)
    return column


def _all_members(op: Operation, mesh: Mesh, names: Sequence[str], lanes: Lanes) -> None:
    """Raises `DeadlockError` if a group over all the axes together is split."""
    arrived(op, mesh.groups(names), lanes)


@communicates("partir.all_slice")
def _partir_all_slice(op: Operation, compiler: Compiler) -> Exchange:
    mesh, axes = _mesh(op, compiler), _lists(op)

    def exchange(lanes: Lanes, column: Column) -> list[Column]:
        return [_cut_all(column, lanes, axes, mesh)]

    return exchange


def _cut_all(column: Column, lanes: Lanes, axes: Sequence[Sequence[str]], mesh: Mesh) -> Column:
    """Every device's tile; devices at the same place with the same value share the result."""
    names = [name for dim in axes for name in dim]
    seen: dict[tuple[int, int], Array] = {}
    result: Column = [None] * mesh.devices
    for lane in lanes:
        key = (id(column[lane]), mesh.index(lane, names))
        if key not in seen:
            seen[key] = _cut(column[lane], lane, axes, mesh)
        result[lane] = seen[key]
    return result


@communicates("partir.all_gather")
def _partir_all_gather(op: Operation, compiler: Compiler) -> Exchange:
    mesh, axes, shape = _mesh(op, compiler), _lists(op), result_shape(op)
    names = [name for dim in axes for name in dim]

    def exchange(lanes: Lanes, column: Column) -> list[Column]:
        _all_members(op, mesh, names, lanes)
        return [_gather(op, column, lanes, mesh, axes, shape)]

    return exchange


def _reduce_axes(
    op: Operation, column: Column, lanes: Lanes, mesh: Mesh, names: Sequence[str], reducer: str
) -> Column:
    result: Column = [None] * mesh.devices
    for group in arrived(op, mesh.groups(names), lanes):
        total = combine(reducer, [column[device] for device in group])
        for device in group:
            result[device] = total
    return result


@communicates("partir.all_reduce")
def _partir_all_reduce(op: Operation, compiler: Compiler) -> Exchange:
    mesh, names, reducer = _mesh(op, compiler), _strings(op, "axes"), text(op, "reducer")

    def exchange(lanes: Lanes, column: Column) -> list[Column]:
        return [_reduce_axes(op, column, lanes, mesh, names, reducer)]

    return exchange


@communicates("partir.reduce_scatter")
def _partir_reduce_scatter(op: Operation, compiler: Compiler) -> Exchange:
    mesh, axes, reducer = _mesh(op, compiler), _lists(op), text(op, "reducer")
    names = [name for dim in axes for name in dim]

    def exchange(lanes: Lanes, column: Column) -> list[Column]:
        total = _reduce_axes(op, column, lanes, mesh, names, reducer)
        return [_cut_all(total, lanes, axes, mesh)]

    return exchange


@communicates("partir.all_to_all")
def _partir_all_to_all(op: Operation, compiler: Compiler) -> Exchange:
    mesh, names = _mesh(op, compiler), _strings(op, "axes")
    gathered, sliced = integer(op, "gather_dim"), integer(op, "slice_dim")
    rank = len(shape_of(op.operands[0].type))
    source, result = shape_of(op.operands[0].type), result_shape(op)
    shape = [result[d] if d == gathered else source[d] for d in range(rank)]
    lists = [
        [names if d == dimension else () for d in range(rank)] for dimension in (gathered, sliced)
    ]

    def exchange(lanes: Lanes, column: Column) -> list[Column]:
        _all_members(op, mesh, names, lanes)
        whole = _gather(op, column, lanes, mesh, lists[0], shape)
        return [_cut_all(whole, lanes, lists[1], mesh)]

    return exchange


@communicates("partir.collective_permute")
def _partir_permute(op: Operation, compiler: Compiler) -> Exchange:
    table = values(need(op, "source_target_pairs")).reshape(-1, 2).tolist()
    return permute(op, [(int(s), int(t)) for s, t in table], _mesh(op, compiler).devices)


@communicates("partir.axis_index")
def _axis_index(op: Operation, compiler: Compiler) -> Exchange:
    mesh, name = _mesh(op, compiler), text(op, "axis")
    dtype = compiler.program.dtype(op.results[0].type)
    positions = [np.array(k).astype(dtype) for k in range(mesh.size(name))]
    column = [positions[mesh.coordinate(device, name)] for device in range(mesh.devices)]
    return same(column)


__all__ = ["Token", "arrived", "extend", "find", "integers", "per_group", "permute", "shared"]
