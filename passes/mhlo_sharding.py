"""What does the older spelling of a sharding say? `mhlo.sharding` text, as a sharding by mesh axis.

`{devices=[4,1,2]<=[8] last_tile_dim_replicate}` numbers devices; which axes of a mesh those numbers
run along is found by taking the list of devices apart into digits, minor to major, each a part of
one axis. A list that no axes make is refused.

```
"{devices=[2,1,2]<=[4] last_tile_dim_replicate}"   with "x"=2, "y"=2:   [{"x"}, {}] replicated {"y"}
```
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..partir_dialect.errors import PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.sdy import AxisRef, DimSharding, MeshValue, Sharding
from .to_sdy import join_axes

_TILES = re.compile(
    r"devices=\[(?P<dims>[\d,]+)\]"
    r"(?:<=\[(?P<iota>[\d,]+)\](?:T\((?P<perm>[\d,]+)\))?|(?P<list>[\d,]+))"
    r"(?P<replicate>\s+last_tile_dim_replicate)?"
    r"(?:\s+last_tile_dims=\{(?P<last>[a-z, ]+)\})?\s*(?:metadata=.*)?\Z"
)
_WHOLE = frozenset({"", "replicated"})
MANUAL = "manual"


@dataclass(frozen=True)
class Tiles:
    """A tiled sharding: tiles of each dimension (then `last`, the kinds of the dimensions after
    those of the tensor), and the device of each tile, row-major."""

    dims: tuple[int, ...]
    devices: tuple[int, ...]
    last: tuple[str, ...] = ()


def elements_of(text: str) -> list[str]:
    """The shardings of a tuple, `{{…}, {…}}`; of a single sharding, that one."""
    inner = text.strip()[1:-1].strip() if text.strip().startswith("{{") else ""
    if not inner:
        return [text.strip()]
    found: list[str] = []
    depth = start = 0
    for position, letter in enumerate(inner):
        if letter == "{":
            start = position if depth == 0 else start
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                found.append(inner[start : position + 1])
    return found


def body_of(text: str) -> str:
    """What stands between the braces of one sharding."""
    text = text.strip()
    return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text


def parse_tiles(text: str) -> Tiles:
    """Reads a `{devices=…}`; raises `PartirError` for anything else."""
    match = _TILES.match(body_of(text))
    if match is None:
        raise PartirError(f"not readable as a sharding: {text!r}")
    dims = _numbers(match["dims"])
    if match["list"]:
        devices = _numbers(match["list"])
    else:
        devices = _iota(_numbers(match["iota"]), _numbers(match["perm"] or ""))
    last = ("replicated",) if match["replicate"] else ()
    if match["last"]:
        last = tuple(word.strip() for word in match["last"].split(","))
    if prod(dims) != len(devices) or sorted(devices) != list(range(len(devices))):
        raise PartirError(f"tiles and devices do not fit each other, got: {text!r}")
    return Tiles(dims, devices, last)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


def _iota(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """0, 1, 2 … in `shape`, transposed, row-major."""
    order = order or tuple(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise PartirError(f"no order of {len(shape)} dimensions: {list(order)}")
    strides = [prod(shape[k + 1 :]) for k in range(len(shape))]
    devices = [0]
    for k in order:
        devices = [d + i * strides[k] for d in devices for i in range(shape[k])]
    return tuple(devices)


def sharding_of_text(text: str, rank: int, mesh: Mesh, symbol: str) -> Sharding | None:
    """The sharding of a tensor of that rank, over the axes of `mesh` under the name `symbol`.

    None for `{manual}` and `{unknown}`, which say nothing of a placement. Raises `PartirError` for
    what the axes cannot say.
    """
    body = body_of(text)
    if body in _WHOLE:
        return Sharding(symbol, (DimSharding(),) * rank)
    if body in (MANUAL, "unknown"):
        return None
    if body.startswith("maximal"):
        raise PartirError(f"a value on one device only cannot be expressed, got: {text!r}")
    tiles = parse_tiles(text)
    if len(tiles.dims) != rank + len(tiles.last):
        raise PartirError(f"a sharding of rank {rank} is wanted, got: {text!r}")
    if set(tiles.last) - {"replicated"}:
        raise PartirError(f"partly manual shardings cannot be expressed, got: {text!r}")
    by_dim = axes_of_tiles(tiles, mesh)
    if by_dim is None:
        raise PartirError(f"no axes of the mesh {mesh} number devices like this, got: {text!r}")
    return Sharding(symbol, tuple(DimSharding(axes) for axes in by_dim[:rank]))


def axes_of_tiles(tiles: Tiles, mesh: Mesh) -> tuple[tuple[AxisRef, ...], ...] | None:
    """The axes along which the tiles of each dimension lie, major to minor; None if none do."""
    if len(tiles.devices) != mesh.devices:
        return None
    digits = _digits(tiles)
    if digits is None:
        return None
    found: list[tuple[AxisRef, ...]] = []
    for dim in digits:
        axes: list[AxisRef] = []
        for stride, size in dim:
            axis = _part(stride, size, mesh)
            if axis is None:
                return None
            axes.append(axis)
        found.append(join_axes(axes, mesh))
    return tuple(found)


Digit = tuple[int, int]
"""(stride in device numbers, size)."""


def _digits(tiles: Tiles) -> list[list[Digit]] | None:
    """For each dimension the digits, major to minor, of which the devices of its tiles are the
    sum."""
    devices: Sequence[int] = tiles.devices
    found: list[list[Digit]] = []
    for size in reversed(tiles.dims):
        dim: list[Digit] = []
        while size > 1:
            prime = next((p for p in _primes(size) if _is_digit(devices, p)), None)
            if prime is None:
                return None
            dim.insert(0, (devices[1] - devices[0], prime))
            devices = devices[::prime]
            size //= prime
        found.insert(0, dim)
    return found if list(devices) == [0] else None


def _is_digit(devices: Sequence[int], size: int) -> bool:
    """Whether the minor digit of that size adds the same to all that stand before it."""
    stride = devices[1] - devices[0]
    return stride > 0 and all(
        device == devices[k - k % size] + k % size * stride for k, device in enumerate(devices)
    )


def _primes(number: int) -> list[int]:
    """The prime divisors, each once."""
    found: list[int] = []
    candidate = 2
    while number > 1:
        if number % candidate == 0:
            number //= candidate
            if candidate not in found:
                found.append(candidate)
        else:
            candidate += 1
    return found


def _part(stride: int, size: int, mesh: Mesh) -> AxisRef | None:
    """The part of an axis along which device numbers go on by `stride`."""
    for name, whole in mesh.axes:
        step = mesh.stride(name)
        if stride % step == 0 and step <= stride < step * whole:
            after = stride // step
            if whole % (after * size):
                return None
            before = whole // (after * size)
            return AxisRef(name) if size == whole else AxisRef(name, before, size)
    return None


def mesh_value(mesh: Mesh) -> MeshValue:
    """The mesh as Shardy writes it."""
    return MeshValue(mesh.axes)
