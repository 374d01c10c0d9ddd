"""Which devices a StableHLO collective joins: replicas, partitions and replica groups.

Device numbers run over replicas (major) and partitions (minor). A module whose collectives use no
channel is in replica mode: every device is a replica.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..partir_dialect.stablehlo_attrs import ReplicaGroupMeshAxesAttr
from .attributes import find, need, number, values
from .compiler import Program
from .faults import InterpreterError
from .meshaxes import mesh_axes_groups

Groups = list[tuple[int, ...]]


@dataclass(frozen=True)
class Grid:
    """How many replicas and partitions there are."""

    replicas: int
    partitions: int

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions

    def replica(self, device: int) -> int:
        return device // self.partitions

    def partition(self, device: int) -> int:
        return device % self.partitions

    def device(self, replica: int, partition: int) -> int:
        return replica * self.partitions + partition

    def spread(self, op: Operation, number: int) -> list[int]:
        """The devices that a number in a cross-partition or cross-replica op stands for."""
        if channel(op) > 0:
            return [self.device(replica, number) for replica in range(self.replicas)]
        return [self.device(number, partition) for partition in range(self.partitions)]


def channel(op: Operation) -> int:
    """The channel of a collective; 0 when it has none."""
    handle = find(op, "channel_handle")
    if handle is None:
        found = find(op, "channel_id")
        return number(found) if found is not None else 0
    return int(handle.handle)


_NUMBERED = ("stablehlo.partition_id",)


def grid_of(program: Program) -> Grid:
    """The grid of a program: as it is told, as the module says, or as its collectives need it."""
    if program.grid is not None:
        return program.grid
    module, devices = program.module, program.devices
    replicas = _count(module, "mhlo.num_replicas")
    partitions = _count(module, "mhlo.num_partitions")
    if replicas * partitions == devices and devices > 1:
        return Grid(replicas, partitions)
    return Grid(1, devices) if _uses_partitions(module) else Grid(devices, 1)


def _count(module: ModuleOp, name: str) -> int:
    found = module.attributes.get(name)
    return number(found) if found is not None else 1


def _uses_partitions(module: ModuleOp) -> bool:
    for op in module.walk():
        if op.name in _NUMBERED or (find(op, "channel_handle") is not None and channel(op) > 0):
            return True
    return False


def replica_groups(op: Operation, grid: Grid) -> Groups:
    """The groups of device numbers of a collective, each in its order."""
    attribute = need(op, "replica_groups")
    if isinstance(attribute, ReplicaGroupMeshAxesAttr):
        return mesh_axes_groups(op, attribute)
    table = values(attribute)
    table = table.reshape(_two(table.shape))
    rows = [[int(device) for device in row if device >= 0] for row in table]
    return _flattened(op, [row for row in rows if row], grid)


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0] if shape else 1)


def _flattened(op: Operation, rows: list[list[int]], grid: Grid) -> Groups:
    """Device numbers for a table of replica, partition or device numbers, by the op's mode."""
    if channel(op) <= 0:  # cross-replica
        rows = rows or [list(range(grid.replicas))]
        return [
            tuple(grid.device(number, partition) for number in row)
            for row in rows
            for partition in range(grid.partitions)
        ]
    if find(op, "use_global_device_ids") is not None:  # flattened ids
        return [tuple(row) for row in rows] or [tuple(range(grid.devices))]
    if op.name in ("stablehlo.all_to_all", "stablehlo.collective_broadcast"):  # cross-partition
        rows = rows or [list(range(grid.partitions))]
        return [
            tuple(grid.device(replica, number) for number in row)
            for row in rows
            for replica in range(grid.replicas)
        ]
    rows = rows or [list(range(grid.replicas))]  # cross-replica and partition
    return [
        tuple(grid.device(n, partition) for partition in range(grid.partitions) for n in row)
        for row in rows
    ]


def check(groups: Groups, devices: int) -> None:
    """Raises `InterpreterError` for a number that no device has."""
    wrong = [number for group in groups for number in group if not 0 <= number < devices]
    if wrong:
        raise InterpreterError(f"there are {devices} devices, got the number {wrong[0]}")
