"""Where the parts of one value are: which axes tile which dimension, and what is to be summed."""

from __future__ import annotations

from dataclasses import dataclass

from .mesh import Mesh


@dataclass(frozen=True, slots=True)
class Placement:
    """`dims[d]` are the axes that tile dimension d, major to minor; `pending` are the axes over
    which the devices hold partial results, each with the operation (`add`, `max`, …) that combines
    them. An axis in neither holds equal copies."""

    dims: tuple[tuple[str, ...], ...]
    pending: tuple[tuple[str, str], ...] = ()

    @classmethod
    def whole(cls, rank: int) -> Placement:
        """The placement of a value of that rank of which every device has all."""
        return cls(((),) * rank)

    @property
    def tiled_axes(self) -> tuple[str, ...]:
        return tuple(axis for dim in self.dims for axis in dim)

    def local_shape(self, shape: tuple[int, ...], mesh: Mesh) -> tuple[int, ...]:
        """The shape of the tile of one device: ceil(size / number of tiles) in each dimension."""
        local = list(shape)
        for d, axes in enumerate(self.dims):
            for axis in axes:
                local[d] = -(-local[d] // mesh.size(axis))
        return tuple(local)

    def __str__(self) -> str:
        dims = ", ".join("{" + ",".join(axes) + "}" for axes in self.dims)
        pending = "".join(f" {op}@{axis}" for axis, op in self.pending)
        return f"[{dims}]{pending}"
