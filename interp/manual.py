"""What `sdy.manual_computation` computes: a region written for one device, run on all of its mesh.

Operands are cut by the manual axes of their shardings, the body runs on every device in lock step,
and the tiles of the results are put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.sdy_values import AxisRef, MeshValue, Sharding
from .attributes import need, result_shape
from .bodies import captures
from .compiler import Compiler, Context, Frame, Program, execute
from .faults import InterpreterError
from .grid import Grid
from .loops import tile
from .meshaxes import resolve
from .registry import Array, Kernel, implements


def _mesh_of(op: Operation, shardings: Sequence[Sharding]) -> Mesh:
    for sharding in shardings:
        value: Any = sharding.mesh
        value = resolve(op, value).data if isinstance(value, str) else value
        assert isinstance(value, MeshValue)
        if value.device_ids and list(value.device_ids) != list(range(value.device_count)):
            raise InterpreterError(f"devices in an order of their own are not supported: {value}")
        return Mesh(value.axes)
    return Mesh(device=1)


def _piece(mesh: Mesh, device: int, axis: AxisRef) -> tuple[int, int]:
    """How many pieces an axis (or a part of one) makes, and which is the device's."""
    size, position = mesh.size(axis.name), mesh.coordinate(device, axis.name)
    if axis.size is None or axis.before is None:
        return size, position
    after = size // (axis.before * axis.size)
    return axis.size, position // after % axis.size


def _cuts(sharding: Sharding, manual: Sequence[str], rank: int) -> list[list[AxisRef]]:
    """For each dimension the manual axes that cut it, major to minor."""
    dims = [[axis for axis in dim.axes if axis.name in manual] for dim in sharding.dims]
    return dims + [[] for _ in range(rank - len(dims))]


def _cut(a: Array, sharding: Sharding, manual: Sequence[str], mesh: Mesh, device: int) -> Array:
    for dimension, axes in enumerate(_cuts(sharding, manual, a.ndim)):
        for axis in axes:
            count, position = _piece(mesh, device, axis)
            a = tile(a, dimension, count, position)
    return a


def _place(
    shape: Sequence[int], sharding: Sharding, manual: Sequence[str], mesh: Mesh, device: int
) -> tuple[slice, ...]:
    """Where in the whole the tile of a device is."""
    places: list[slice] = []
    for size, axes in zip(shape, _cuts(sharding, manual, len(shape)), strict=True):
        begin, extent = 0, size
        for axis in axes:
            count, position = _piece(mesh, device, axis)
            extent //= count
            begin += position * extent
        places.append(slice(begin, begin + extent))
    return tuple(places)


@implements("sdy.manual_computation")
def _manual_computation(op: Operation, context: Context) -> Kernel:
    into: Sequence[Sharding] = need(op, "in_shardings").data
    out: Sequence[Sharding] = need(op, "out_shardings").data
    manual = [axis.name for axis in need(op, "manual_axes").data]
    if captures(op.regions[0]):
        raise InterpreterError(f"{op.name} must take what it uses as operands")
    mesh = _mesh_of(op, [*into, *out])
    outer, devices = context.program, range(mesh.devices)
    program = Program(
        outer.module,
        devices=mesh.devices,
        mesh=mesh,
        grid=Grid(1, mesh.devices),
        reference=outer.reference,
    )
    compiler = Compiler(program)
    code = compiler.region(op.regions[0])

    def kernel(*operands: Array) -> list[Array]:
        frame: Frame = [None] * compiler.size
        for slot, a, sharding in zip(code.arguments, operands, into, strict=True):
            frame[slot] = [_cut(a, sharding, manual, mesh, device) for device in devices]
        execute(code, frame, devices)
        results: list[Array] = []
        for k, (slot, sharding) in enumerate(zip(code.returns, out, strict=True)):
            shape = result_shape(op, k)
            whole = np.empty(shape, frame[slot][0].dtype)
            for device in devices:
                whole[_place(shape, sharding, manual, mesh, device)] = frame[slot][device]
            results.append(whole)
        return results

    return kernel
