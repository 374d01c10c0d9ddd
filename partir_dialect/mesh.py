"""Which devices there are: an ordered list of named axes with sizes.

Device numbers are row-major over the axes: the first axis is the major one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from .errors import MeshError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


@dataclass(frozen=True, init=False)
class Mesh:
    """`Mesh(batch=4, model=2)`: axis names and sizes in device order, major to minor.

    Raises `MeshError` for a repeated name, a size below one or a name that is no identifier.
    """

    axes: tuple[tuple[str, int], ...]
    _sizes: dict[str, int] = field(compare=False, repr=False, hash=False)

    def __init__(self, axes: Iterable[tuple[str, int]] = (), /, **sizes: int) -> None:
        pairs = (*axes, *sizes.items())
        table: dict[str, int] = {}
        for name, size in pairs:
            if not _NAME.match(name):
                raise MeshError(f"axis name must be an identifier, got: {name!r}", name=name)
            if name in table:
                raise MeshError(f"axis named twice in the mesh: {name!r}", name=name)
            if size < 1:
                raise MeshError(f"axis size must be at least 1, got: {name}={size}", name=name)
            table[name] = size
        object.__setattr__(self, "axes", tuple(pairs))
        object.__setattr__(self, "_sizes", table)

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """Reads `batch=4,model=2`."""
        pairs: list[tuple[str, int]] = []
        for part in text.split(","):
            name, equals, size = part.strip().partition("=")
            if not equals or not size.strip().isdecimal():
                raise MeshError(f"a mesh axis is written NAME=SIZE, got: {part.strip()!r}")
            pairs.append((name.strip(), int(size)))
        return cls(pairs)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return prod(self.sizes)

    def __contains__(self, name: str) -> bool:
        return name in self._sizes

    def size(self, name: str) -> int:
        """The size of the axis `name`; raises `MeshError` if there is none."""
        if name not in self._sizes:
            raise MeshError(f"no such mesh axis: {name!r}", name=name, candidates=self.names)
        return self._sizes[name]

    def stride(self, name: str) -> int:
        """How far apart in device number two neighbours along `name` are."""
        self.size(name)
        return prod(self.sizes[self.names.index(name) + 1 :])

    def coordinate(self, device: int, name: str) -> int:
        """The position of `device` along the axis `name`."""
        return device // self.stride(name) % self.size(name)

    def index(self, device: int, names: Sequence[str]) -> int:
        """The position of `device` along several axes, the first the major one."""
        position = 0
        for name in names:
            position = position * self.size(name) + self.coordinate(device, name)
        return position

    def groups(self, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Replica groups over `names`: all devices, grouped by equal position on the other axes;
        inside a group ordered by the position along `names`, the first the major one."""
        others = [name for name in self.names if name not in names]
        base = [range(self.size(name)) for name in others]
        inner = [range(self.size(name)) for name in names]
        return tuple(
            tuple(
                sum(
                    position * self.stride(name)
                    for name, position in zip((*others, *names), (*outer, *along), strict=True)
                )
                for along in itertools.product(*inner)
            )
            for outer in itertools.product(*base)
        )

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes)
