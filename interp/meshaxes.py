"""Which devices a replica group given by mesh axes joins."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from ..partir_dialect.sdy_attrs import MeshAttr as SdyMeshAttr
from ..partir_dialect.stablehlo_attrs import AxisRefAttr, MeshAttr, ReplicaGroupMeshAxesAttr
from .attributes import find, values, word
from .faults import InterpreterError

Axes = list[tuple[str, int]]


def mesh_axes_groups(op: Operation, attribute: ReplicaGroupMeshAxesAttr) -> list[tuple[int, ...]]:
    """The groups over the named axes, the first the major one; an axis reference may be part of
    one."""
    axes, devices = _mesh(op, attribute.mesh)
    sizes = [size for _, size in axes]
    table = devices.reshape(sizes)
    chosen: list[int] = []
    shape: list[int] = []
    wanted = [_reference(axis) for axis in attribute.axes]
    positions: dict[tuple[str, int], int] = {}
    for name, size in axes:
        for start, length in _cuts(size, [sub for other, sub in wanted if other == name]):
            positions[name, start] = len(shape)
            shape.append(length)
    for name, sub in wanted:
        key = (name, sub[0] if sub else 1)
        if key not in positions:
            raise InterpreterError(
                f"no such mesh axis: {name!r}", name=name, candidates=[n for n, _ in axes]
            )
        chosen.append(positions[key])
    others = [d for d in range(len(shape)) if d not in chosen]
    split = np.transpose(table.reshape(shape), (*others, *chosen))
    size = prod(shape[d] for d in chosen)
    return [tuple(int(d) for d in row) for row in split.reshape(-1, size)]


def _reference(axis: Attribute) -> tuple[str, tuple[int, int] | None]:
    if isinstance(axis, AxisRefAttr):
        return axis.name_, axis.sub_axis_info
    return word(axis), None


def _cuts(size: int, subs: list[tuple[int, int] | None]) -> list[tuple[int, int]]:
    """An axis of `size` as parts, major to minor: (product of the sizes before, size)."""
    marks = {1, size}
    for sub in subs:
        if sub is not None:
            marks.update((sub[0], sub[0] * sub[1]))
    ordered = sorted(marks)
    if size == 1:
        return [(1, 1)]
    return [(a, b // a) for a, b in pairwise(ordered)]


def _mesh(op: Operation, attribute: Any) -> tuple[Axes, np.ndarray[Any, np.dtype[Any]]]:
    """The axes and the device numbers of a mesh, given itself or by symbol."""
    if isinstance(attribute, SymbolRefAttr):
        attribute = resolve(op, attribute.string_value())
    ids: Any = None
    if isinstance(attribute, MeshAttr):
        axes = [(axis.name_, axis.size) for axis in attribute.axes]
        if attribute.device_ids is not None:
            ids = values(attribute.device_ids).reshape(-1)
    elif isinstance(attribute, SdyMeshAttr):
        axes = list(attribute.data.axes)
        ids = np.array(attribute.data.device_ids) if attribute.data.device_ids else None
    else:
        raise InterpreterError(f"a mesh is needed for the replica groups, got: {attribute}")
    count = prod(size for _, size in axes)
    return axes, np.arange(count) if ids is None else ids


def resolve(op: Operation, name: str) -> Any:
    """The mesh that a symbol of the module names; raises `InterpreterError` if there is none."""
    module: Any = op
    while not isinstance(module, ModuleOp):
        module = module.parent_op()
    for other in module.body.block.ops:
        symbol = find(other, "sym_name")
        if symbol is not None and word(symbol) == name:
            return find(other, "mesh")
    raise InterpreterError(f"no such mesh: {name!r}", name=name)
