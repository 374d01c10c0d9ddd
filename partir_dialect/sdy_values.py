"""What does Shardy say about placement? Frozen values, apart from how they are written.

An axis reference is an axis or a part of one, a dimension sharding a list of them, a sharding
one of those per dimension with the mesh they speak of.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .stablehlo_structs import string_text


@dataclass(frozen=True)
class AxisRef:
    """`"x"`, or `"x":(2)4`: the part of size 4 of axis x that has a part of size 2 before it."""

    name: str
    before: int | None = None
    size: int | None = None

    def __str__(self) -> str:
        part = "" if self.size is None else f":({self.before}){self.size}"
        return string_text(self.name) + part

    def size_on(self, mesh: MeshValue) -> int:
        """How many pieces the axis (or its part) makes on this mesh."""
        return mesh.size(self.name) if self.size is None else self.size


@dataclass(frozen=True)
class DimSharding:
    """How one dimension is cut: `{"x", "y"}`, open to more if it ends in `?`, with a priority."""

    axes: tuple[AxisRef, ...] = ()
    is_open: bool = False
    priority: int | None = None

    def __str__(self) -> str:
        words = [*map(str, self.axes), *("?" if self.is_open else "")]
        priority = "" if self.priority is None else f"p{self.priority}"
        return f"{{{', '.join(words)}}}{priority}"


@dataclass(frozen=True)
class MeshValue:
    """A mesh as Shardy writes it: axes with sizes, and device numbers if they are not 0, 1, 2 …

    Without axes and with one device it is the maximal mesh: everything on that device.
    """

    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] = ()

    @property
    def is_maximal(self) -> bool:
        """Whether it names one device only."""
        return not self.axes and len(self.device_ids) == 1

    @property
    def device_count(self) -> int:
        """How many devices the axes make."""
        return prod(size for _, size in self.axes)

    def size(self, name: str) -> int:
        """The size of an axis; `KeyError` if the mesh has none of that name."""
        return dict(self.axes)[name]

    def __str__(self) -> str:
        axes = ", ".join(f"{string_text(name)}={size}" for name, size in self.axes)
        devices = (
            f", device_ids=[{', '.join(map(str, self.device_ids))}]" if self.device_ids else ""
        )
        return f"<[{axes}]{devices}>"


@dataclass(frozen=True)
class Sharding:
    """How a tensor is cut: by which axes of which mesh each dimension.

    `mesh` is the symbol of a `sdy.mesh` op (without `@`) or the mesh itself. Axes in
    `replicated` may not be used further, over axes in `unreduced` a sum is still to be taken.
    """

    mesh: str | MeshValue
    dims: tuple[DimSharding, ...]
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()

    @property
    def rank(self) -> int:
        """How many dimensions it speaks of."""
        return len(self.dims)

    def axes_used(self) -> tuple[AxisRef, ...]:
        """Every axis reference, in order: dimensions, replicated, unreduced."""
        of_dims = tuple(axis for dim in self.dims for axis in dim.axes)
        return of_dims + self.replicated + self.unreduced

    def __str__(self) -> str:
        mesh = symbol_text(self.mesh) if isinstance(self.mesh, str) else f"mesh{self.mesh}"
        dims = ", ".join(map(str, self.dims))
        replicated = f", replicated={axes_text(self.replicated)}" if self.replicated else ""
        unreduced = f", unreduced={axes_text(self.unreduced)}" if self.unreduced else ""
        return f"<{mesh}, [{dims}]{replicated}{unreduced}>"


@dataclass(frozen=True)
class AllToAllParam:
    """`{"x"}: 0->1`: these axes go from the one dimension to the other."""

    axes: tuple[AxisRef, ...]
    source: int
    target: int

    def __str__(self) -> str:
        return f"{axes_text(self.axes)}: {self.source}->{self.target}"


@dataclass(frozen=True)
class ShardingRule:
    """Shardy's rule of an op: for each dimension the factors that it is a product of.

    `operands` and `results` hold, per value and dimension, factor numbers major to minor;
    `sizes` the size of every factor, the other fields the factors of that kind.
    """

    sizes: tuple[int, ...]
    operands: tuple[tuple[tuple[int, ...], ...], ...]
    results: tuple[tuple[tuple[int, ...], ...], ...]
    reduction: tuple[int, ...] = ()
    need_replication: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    blocked_propagation: tuple[int, ...] = ()
    is_custom: bool = False

    def __str__(self) -> str:
        sides = f"({_mappings(self.operands)})->({_mappings(self.results)})"
        pairs = (f"{factor_text(number)}={size}" for number, size in enumerate(self.sizes))
        text = f"{sides} {{{', '.join(pairs)}}}" if self.sizes else sides
        for key in FACTOR_KINDS:
            factors: tuple[int, ...] = getattr(self, key)
            if factors:
                text += f" {key}={{{', '.join(map(factor_text, factors))}}}"
        return f"<{text}{', custom' if self.is_custom else ''}>"


FACTOR_KINDS = ("reduction", "need_replication", "permutation", "blocked_propagation")


def factor_text(number: int) -> str:
    """Factor 0 is `i`, 17 is `z`, then `z_1`, `z_2` …"""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def factor_number(text: str) -> int:
    """The inverse of `factor_text`, for a text that is known to be one."""
    return 17 + int(text[2:]) if "_" in text else ord(text) - ord("i")


def _mappings(values: tuple[tuple[tuple[int, ...], ...], ...]) -> str:
    return ", ".join(
        f"[{', '.join(''.join(map(factor_text, dim)) for dim in dims)}]" for dims in values
    )


def axes_text(axes: tuple[AxisRef, ...]) -> str:
    """`{"x", "y"}`."""
    return f"{{{', '.join(map(str, axes))}}}"


def symbol_text(name: str) -> str:
    """`@mesh`, with quotes when the name is no identifier."""
    plain = name.replace("_", "a").replace("$", "a").replace(".", "a")
    identifier = plain.isascii() and plain.isalnum() and not name[0].isdigit()
    return f"@{name}" if identifier and name[0] not in "$." else f"@{string_text(name)}"
