"""How does each global argument and result map to the local one of every device?

A device-local module says it itself, in the string attribute `partir.border` of main's arguments
and results: the global shape, and for each dimension the axes that tile it, major to minor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr

from ..engine.graph import main_of
from ..partir_dialect.errors import MismatchError, PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir_attributes import Border as BorderText
from ..partir_dialect.placement import Placement

ATTRIBUTE = "partir.border"

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Edge:
    """One argument or result: flat name, global shape (elements), placement."""

    name: str
    shape: tuple[int, ...]
    placement: Placement

    def index(self, device: int, mesh: Mesh) -> tuple[slice, ...]:
        """Where in the global array the tile of the device is."""
        found: list[slice] = []
        for size, axes in zip(self.shape, self.placement.dims, strict=True):
            tiles = 1
            for axis in axes:
                tiles *= mesh.size(axis)
            tile = -(-size // tiles)
            start = mesh.index(device, axes) * tile
            found.append(slice(start, start + tile))
        return tuple(found)

    def scatter(self, array: Array, mesh: Mesh) -> list[Array]:
        """The tile of each device. Raises `PartirError` if the array has another shape."""
        if array.shape != self.shape:
            raise PartirError(
                f"{self.name} must be of shape {list(self.shape)}, got: {list(array.shape)}"
            )
        return [
            np.ascontiguousarray(array[self.index(device, mesh)]).reshape(
                self.placement.local_shape(self.shape, mesh)
            )
            for device in range(mesh.devices)
        ]

    def gather(self, tiles: Sequence[Array], mesh: Mesh) -> Array:
        """The global array; raises `MismatchError` if devices that hold one tile differ."""
        whole = np.empty(self.shape, tiles[0].dtype)
        first: dict[tuple[tuple[int, int], ...], int] = {}
        for device, tile in enumerate(tiles):
            index = self.index(device, mesh)
            holder = first.setdefault(tuple((s.start, s.stop) for s in index), device)
            if holder == device:
                whole[index] = tile
            elif tile.tobytes() != tiles[holder].tobytes():
                raise MismatchError(
                    f"{self.name} must be equal on devices {holder} and {device}, but it differs"
                )
        return whole


@dataclass(frozen=True)
class Border:
    """All arguments and results of a device-local module, in order."""

    arguments: tuple[Edge, ...]
    results: tuple[Edge, ...]

    def scatter(self, arrays: Sequence[Array], mesh: Mesh) -> list[list[Array]]:
        """Global arguments to `[device][argument]`."""
        columns = [e.scatter(a, mesh) for e, a in zip(self.arguments, arrays, strict=True)]
        return [[column[device] for column in columns] for device in range(mesh.devices)]

    def gather(self, outputs: Sequence[Sequence[Array]], mesh: Mesh) -> list[Array]:
        """`[device][result]` to global results; raises `MismatchError` if copies differ."""
        columns = zip(*outputs, strict=True)
        return [e.gather(column, mesh) for e, column in zip(self.results, columns, strict=True)]


def read_border(module: ModuleOp, mesh: Mesh) -> Border:
    """The border that a module carries. Raises `PartirError` if it carries none for this mesh."""
    main = main_of(module)
    counts = (len(main.function_type.inputs), len(main.function_type.outputs))
    sides = (main.arg_attrs, main.res_attrs)
    arguments, results = (
        _edges(side, count, mesh) for side, count in zip(sides, counts, strict=True)
    )
    return Border(arguments, results)


def _edges(
    attributes: ArrayAttr[DictionaryAttr] | None, count: int, mesh: Mesh
) -> tuple[Edge, ...]:
    entries = attributes.data if attributes is not None else ()
    found = tuple(_edge(entry, mesh) for entry in entries)
    if len(found) != count:
        raise PartirError(f"no device-local module of partir: main lacks {ATTRIBUTE!r}")
    return found


def _edge(entry: DictionaryAttr, mesh: Mesh) -> Edge:
    text = entry.data.get(ATTRIBUTE)
    if not isinstance(text, StringAttr):
        raise PartirError(f"no device-local module of partir: main lacks {ATTRIBUTE!r}")
    try:
        border = BorderText.parse(text.data)
    except ValueError as error:
        raise PartirError(str(error)) from error
    for axis in border.placement.tiled_axes:
        mesh.size(axis)
    return Edge(border.name, border.shape, border.placement)
