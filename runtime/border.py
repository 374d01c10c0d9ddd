"""How does each global argument and result map to the local one of every device?

A device-local module says it itself, in the string attribute `partir.border` of main's arguments
and results: the global shape, and for each dimension the axes that tile it, major to minor. A part
of an axis is written as Shardy does: `model:(1)2`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from ..engine.build import main_of
from ..partir_dialect.errors import MismatchError, PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir_attributes import Border as WrittenBorder
from ..partir_dialect.placement import Placement
from ..partir_dialect.sdy_values import AxisRef

ATTRIBUTE = "partir.border"

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Edge:
    """One argument or result: flat name, global shape (elements), placement."""

    name: str
    shape: tuple[int, ...]
    placement: Placement

    def index(self, device: int, mesh: Mesh) -> tuple[slice, ...]:
        """Where in the global array the tile of the device is; the last tiles may be short."""
        found: list[slice] = []
        for size, axes in zip(self.shape, self.placement.dims, strict=True):
            tiles = 1
            for axis in axes:
                tiles *= mesh.size(axis)
            tile = -(-size // tiles)
            start = mesh.index(device, axes) * tile
            found.append(slice(min(start, size), min(start + tile, size)))
        return tuple(found)

    def scatter(self, array: Array, mesh: Mesh) -> list[Array]:
        """The tile of each device, with rubbish beyond the end of a short one, so that nothing can
        come to depend on it. Raises `PartirError` if the array has another shape."""
        if array.shape != self.shape:
            raise PartirError(
                f"{self.name} must be of shape {list(self.shape)}, got: {list(array.shape)}"
            )
        local = self.placement.local_shape(self.shape, mesh)
        return [_padded(array[self.index(device, mesh)], local) for device in range(mesh.devices)]

    def gather(self, tiles: Sequence[Array], mesh: Mesh) -> Array:
        """The global array; raises `MismatchError` if devices that hold one tile differ."""
        whole = np.empty(self.shape, tiles[0].dtype)
        first: dict[tuple[tuple[int, int], ...], int] = {}
        for device, tile in enumerate(tiles):
            index = self.index(device, mesh)
            holder = first.setdefault(tuple((s.start, s.stop) for s in index), device)
            valid = [s.stop - s.start for s in index]
            if holder == device:
                whole[index] = head(tile, valid)
            elif head(tile, valid).tobytes() != head(tiles[holder], valid).tobytes():
                raise MismatchError(
                    f"{self.name} must be equal on devices {holder} and {device}, but it differs"
                )
        return whole


def head(tile: Array, shape: Sequence[int]) -> Array:
    """The valid part of a tile: the first elements in each dimension."""
    return tile[tuple(slice(0, size) for size in shape)]


def _padded(tile: Array, shape: tuple[int, ...]) -> Array:
    """The tile in its local shape; beyond its end is not a number, or as large as can be."""
    if tile.shape == shape:
        return np.ascontiguousarray(tile).reshape(shape)  # which makes a scalar a vector
    integer = tile.dtype.kind in "iu"
    whole = np.full(shape, np.iinfo(tile.dtype).max if integer else np.nan).astype(tile.dtype)
    whole[tuple(slice(0, size) for size in tile.shape)] = tile
    return whole


@dataclass(frozen=True)
class Border:
    """All arguments and results of a device-local module, in order.

    `mesh` has the axes that the placements name: those that the user named, or their parts.
    """

    mesh: Mesh
    arguments: tuple[Edge, ...]
    results: tuple[Edge, ...]

    def scatter(self, arrays: Sequence[Array]) -> list[list[Array]]:
        """Global arguments to `[device][argument]`."""
        columns = [e.scatter(a, self.mesh) for e, a in zip(self.arguments, arrays, strict=True)]
        return [[column[device] for column in columns] for device in range(self.mesh.devices)]

    def gather(self, outputs: Sequence[Sequence[Array]]) -> list[Array]:
        """`[device][result]` to global results; raises `MismatchError` if copies differ."""
        columns = zip(*outputs, strict=True)
        return [e.gather(c, self.mesh) for e, c in zip(self.results, columns, strict=True)]


def read_border(module: ModuleOp, mesh: Mesh) -> Border:
    """The border that a module carries. Raises `PartirError` if it carries none for this mesh."""
    main = main_of(module)
    counts = (len(main.function_type.inputs), len(main.function_type.outputs))
    sides = (main.arg_attrs, main.res_attrs)
    written = [_written(side, count) for side, count in zip(sides, counts, strict=True)]
    axes = [axis for side in written for border in side for dim in border.dims for axis in dim]
    refined, parts = refine(mesh, [parse_part(text) for text in dict.fromkeys(axes)])
    arguments, results = (tuple(_edge(border, parts) for border in side) for side in written)
    return Border(refined, arguments, results)


def rewrite_border(module: ModuleOp, place: Callable[[Placement], Placement]) -> None:
    """Replaces the placement of every argument and result, for example to rename axes."""
    main = main_of(module)
    for name in ("arg_attrs", "res_attrs"):
        rows = main.properties.get(name)
        assert isinstance(rows, ArrayAttr)
        new: list[Attribute] = []
        for row in cast("ArrayAttr[DictionaryAttr]", rows):
            text = row.data[ATTRIBUTE]
            assert isinstance(text, StringAttr)
            border = WrittenBorder.parse(text.data)
            border = replace(border, dims=place(border.placement).dims)
            new.append(DictionaryAttr({**row.data, ATTRIBUTE: StringAttr(str(border))}))
        main.properties[name] = cast("Attribute", ArrayAttr(new))


def _written(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[WrittenBorder]:
    found = [_parse(entry) for entry in (attributes.data if attributes is not None else ())]
    if len(found) != count:
        raise PartirError(f"no device-local module of partir: main lacks {ATTRIBUTE!r}")
    return found


def _parse(entry: DictionaryAttr) -> WrittenBorder:
    text = entry.data.get(ATTRIBUTE)
    if not isinstance(text, StringAttr):
        raise PartirError(f"no device-local module of partir: main lacks {ATTRIBUTE!r}")
    try:
        return WrittenBorder.parse(text.data)
    except ValueError as error:
        raise PartirError(str(error)) from error


def _edge(border: WrittenBorder, parts: Callable[[str], tuple[str, ...]]) -> Edge:
    dims = tuple(tuple(part for axis in dim for part in parts(axis)) for dim in border.dims)
    return Edge(border.name, border.shape, Placement(dims))


# --- parts of axes ------------------------------------------------------------------------------

_PART = re.compile(r"([^:]+)(?::\((\d+)\)(\d+))?\Z")


def part_text(axis: AxisRef) -> str:
    """`model`, or `model:(2)4` for the part of size 4 that has a part of size 2 before it."""
    return axis.name if axis.size is None else f"{axis.name}:({axis.before}){axis.size}"


def parse_part(text: str) -> AxisRef:
    """The inverse of `part_text`; raises `PartirError`."""
    match = _PART.match(text)
    if match is None:
        raise PartirError(f"an axis or its part is written model or model:(1)2, got: {text!r}")
    if match[2] is None:
        return AxisRef(text)
    return AxisRef(match[1], int(match[2]), int(match[3]))


def refine(mesh: Mesh, axes: Sequence[AxisRef]) -> tuple[Mesh, Callable[[str], tuple[str, ...]]]:
    """The mesh with its axes cut where the references cut them, and a function from the text of a
    reference to the axes of that mesh. Raises `MeshError` for an axis that is not there,
    `PartirError` for a part that is none."""
    pairs: list[tuple[str, int]] = []
    starts: dict[str, list[tuple[int, str]]] = {}
    for axis in axes:
        mesh.size(axis.name)
    for name, size in mesh.axes:
        cuts = _cuts(name, size, [axis for axis in axes if axis.name == name])
        atoms = [name] if len(cuts) == 2 else [f"{name}.{n}" for n in range(len(cuts) - 1)]
        pairs.extend((atom, cuts[n + 1] // cuts[n]) for n, atom in enumerate(atoms))
        starts[name] = list(zip(cuts, atoms, strict=False))

    def parts(text: str) -> tuple[str, ...]:
        axis = parse_part(text)
        if axis.size is None or axis.before is None:
            return tuple(atom for _, atom in starts[axis.name])
        end = axis.before * axis.size
        return tuple(atom for at, atom in starts[axis.name] if axis.before <= at < end)

    return Mesh(pairs), parts


def _cuts(name: str, size: int, references: Sequence[AxisRef]) -> list[int]:
    """Where an axis is cut: products of the sizes before each cut, from 1 to the whole size."""
    cuts = {1, size}
    for axis in references:
        if axis.size is not None and axis.before is not None:
            cuts |= {axis.before, axis.before * axis.size}
    found = sorted(cuts) if size > 1 else [1, 1]
    if any(n < 1 or m % n for n, m in itertools.pairwise(found)) or found[-1] != size:
        raise PartirError(f"{name}={size} cannot be cut into parts at {found}")
    return found
