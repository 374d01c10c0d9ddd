"""How a value gets from one placement to another: the shortest chain of reshards.

Placements here are plain tuples over axis indices. A chain is applied in order: free slices first,
then reductions (scattered where the target tiles the pending axis), then exchanges and gathers,
then the remaining slices (DESIGN, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Dims = tuple[tuple[int, ...], ...]
Pending = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A placement: for each dimension the axes that tile it, major to minor, and what is
    pending."""

    dims: Dims
    pending: Pending = ()

    @property
    def pending_axes(self) -> frozenset[int]:
        return frozenset(axis for axis, _ in self.pending)

    @property
    def tiled(self) -> frozenset[int]:
        return frozenset(axis for dim in self.dims for axis in dim)


@dataclass(frozen=True, slots=True)
class Halo:
    """A part of a tile that goes to other devices: `size` elements of dimension `dim` from `start`
    on, along `pairs` of (source tile, target tile)."""

    dim: int
    start: int
    size: int
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One reshard: `kind` is the collective (or `all_slice`); `axes[d]` are the axes that it takes
    from or gives to dimension d (one entry, the axes, for `all_reduce`); `dims` are (gather, slice)
    of an all_to_all; `reducer` is ⊕ of a reduction; `before` and `after` are the placements.

    A permute with a `halo` moves a part of each tile to the devices that need it beside their own;
    the placement stays, and what is received is no tile of the value."""

    kind: str
    axes: Dims
    before: Spot
    after: Spot
    reducer: str | None = None
    dims: tuple[int, int] | None = None
    halo: Halo | None = None

    @property
    def group(self) -> tuple[int, ...]:
        """The axes along which devices talk to each other, major to minor."""
        return tuple(axis for dim in self.axes for axis in dim)


COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute")


def local_shape(shape: tuple[int, ...], dims: Dims, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one device's tile."""
    local = list(shape)
    for d, axes in enumerate(dims):
        for axis in axes:
            local[d] = -(-local[d] // sizes[axis])
    return tuple(local)


@dataclass(frozen=True, slots=True)
class Grid:
    """The global shape of a value and the sizes of the axes: whether tiles line up."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...]

    def nests(self, d: int, major: tuple[int, ...], minor: tuple[int, ...]) -> bool:
        """Whether the tiles over `major` consist of whole tiles over `major + minor`: padding is at
        the tail of the dimension alone, so uneven tiles of tiles do not line up."""
        if not major or not minor:
            return True
        count = prod(self.sizes[axis] for axis in major)
        parts = prod(self.sizes[axis] for axis in minor)
        size = self.shape[d]
        return -(-size // count) == -(-size // (count * parts)) * parts

    def run(
        self, d: int, have: tuple[int, ...], more: tuple[int, ...], stop: frozenset[int]
    ) -> tuple[int, ...]:
        """The longest beginning of `more` that can tile dimension d further, up to an axis in
        `stop`."""
        for count, axis in enumerate(more):
            if axis in stop:
                more = more[:count]
                break
        while more and not self.nests(d, have, more):
            more = more[:-1]
        return more


def route(source: Spot, target: Spot, grid: Grid) -> tuple[Move, ...]:
    """The moves from `source` to `target`; what stays pending is what the target has pending."""
    return _Route(source, target, grid).run()


class _Route:
    """Where the value is on its way (`at`), and the moves so far."""

    def __init__(self, source: Spot, target: Spot, grid: Grid) -> None:
        self.at = source
        self.target = target
        self.grid = grid
        self.rank = len(source.dims)
        self.moves: list[Move] = []

    def run(self) -> tuple[Move, ...]:
        if self.at.pending:
            self.slice(self.at.tiled | self.at.pending_axes)  # so that reductions move fewer bytes
            self.reduce()
        self.exchange()
        self.slice(self.at.tiled)
        for d in sorted(range(self.rank), key=self.is_wanted_elsewhere):
            self.exchange()
            self.gather(d)
        self.slice(self.at.tiled)
        assert self.at == self.target, (self.at, self.target)
        return tuple(self.moves)

    def move(
        self,
        kind: str,
        axes: Dims,
        after: Spot,
        reducer: str | None = None,
        dims: tuple[int, int] | None = None,
    ) -> None:
        self.moves.append(Move(kind, axes, self.at, after, reducer, dims))
        self.at = after

    def only(self, d: int, axes: tuple[int, ...]) -> Dims:
        return tuple(axes if e == d else () for e in range(self.rank))

    def with_dim(self, d: int, axes: tuple[int, ...]) -> Dims:
        return (*self.at.dims[:d], axes, *self.at.dims[d + 1 :])

    def further(self, d: int, stop: frozenset[int]) -> tuple[int, ...]:
        """The axes by which dimension d can be tiled further towards the target."""
        have, want = self.at.dims[d], self.target.dims[d]
        if want[: len(have)] != have:
            return ()
        return self.grid.run(d, have, want[len(have) :], stop)

    def slice(self, stop: frozenset[int]) -> None:
        """Free slices, up to an axis that is taken already."""
        extra = tuple(self.further(d, stop) for d in range(self.rank))
        if any(extra):
            dims = tuple(a + b for a, b in zip(self.at.dims, extra, strict=True))
            self.move("all_slice", extra, Spot(dims, self.at.pending))

    def reduce(self) -> None:
        """Reduces what is pending, scattered where the target is tiled by a pending axis."""
        kept = self.target.pending_axes
        everything = frozenset(range(len(self.grid.sizes)))
        for reducer in dict.fromkeys(r for axis, r in self.at.pending if axis not in kept):
            axes = [axis for axis, r in self.at.pending if r == reducer and axis not in kept]
            for d in range(self.rank):
                run = self.further(d, everything - set(axes))
                if run:
                    pending = tuple(p for p in self.at.pending if p[0] not in run)
                    after = Spot(self.with_dim(d, self.at.dims[d] + run), pending)
                    self.move("reduce_scatter", self.only(d, run), after, reducer)
                    axes = [axis for axis in axes if axis not in run]
            if axes:
                pending = tuple(p for p in self.at.pending if p[0] not in axes)
                self.move("all_reduce", (tuple(axes),), Spot(self.at.dims, pending), reducer)

    def exchange(self) -> None:
        """all_to_all: the minor axes of one dimension become the minor axes of another."""
        for d1 in range(self.rank):
            want = self.target.dims[d1]
            leaving = self.at.dims[d1][len(want) :]
            if not leaving or self.at.dims[d1][: len(want)] != want:
                continue
            if not self.grid.nests(d1, want, leaving):
                continue
            for d2 in range(self.rank):
                have = self.at.dims[d2]
                if d2 == d1 or self.target.dims[d2] != have + leaving:
                    continue
                if self.grid.nests(d2, have, leaving):
                    dims = list(self.at.dims)
                    dims[d1], dims[d2] = want, have + leaving
                    after = Spot(tuple(dims), self.at.pending)
                    self.move("all_to_all", self.only(d1, leaving), after, None, (d1, d2))
                    break

    def is_wanted_elsewhere(self, d: int) -> bool:
        """Whether an axis of dimension d tiles another dimension of the target."""
        return any(
            axis in want
            for e, want in enumerate(self.target.dims)
            if e != d
            for axis in self.at.dims[d]
        )

    def gather(self, d: int) -> None:
        """Takes away the axes that the target lacks; makes them the minor ones before."""
        have, want = self.at.dims[d], self.target.dims[d]
        nests = self.grid.nests
        common = 0
        while common < min(len(have), len(want)) and have[common] == want[common]:
            common += 1
        while not nests(d, have[:common], have[common:]) or not nests(
            d, want[:common], want[common:]
        ):
            common -= 1
        kept, leaving = have[:common], have[common:]
        if not leaving:
            return
        staying = self.grid.run(d, kept, want[common:], frozenset(want) - set(leaving))
        gone = tuple(axis for axis in leaving if axis not in staying)
        while staying and not (
            nests(d, kept + staying, gone)
            and nests(d, kept, staying)
            and nests(d, kept + staying, want[common + len(staying) :])
        ):
            staying = staying[:-1]
            gone = tuple(axis for axis in leaving if axis not in staying)
        order = kept + staying + gone
        if staying and order != have:
            after = Spot(self.with_dim(d, order), self.at.pending)
            self.move("collective_permute", self.only(d, leaving), after)
            self.exchange()
        if gone and self.at.dims[d] != kept + staying:
            after = Spot(self.with_dim(d, kept + staying), self.at.pending)
            self.move("all_gather", self.only(d, gone), after)


def received_shape(move: Move, tile: tuple[int, ...]) -> tuple[int, ...]:
    """What a device has after a move that gives it tiles of that shape: a halo is a part of one."""
    halo = move.halo
    return tile if halo is None else (*tile[: halo.dim], halo.size, *tile[halo.dim + 1 :])


def move_bytes(
    move: Move, shape: tuple[int, ...], itemsize: float, sizes: tuple[int, ...]
) -> tuple[int, int]:
    """(result bytes per device, bytes a device sends by ring algorithms) of one move.

    Ring figures as in NCCL's and XLA's analysis, for n devices and b result bytes: all_reduce
    2(n-1)/n·b, all_gather (n-1)/n·b, reduce_scatter (n-1)·b, all_to_all (n-1)/n·b, permute b.
    """
    elements = prod(received_shape(move, local_shape(shape, move.after.dims, sizes)))
    result = -int(-elements * itemsize // 1)
    if move.kind == "all_slice":
        return result, 0
    n = prod(sizes[axis] for axis in move.group)
    ring = {
        "all_reduce": 2 * (n - 1) * result / n,
        "all_gather": (n - 1) * result / n,
        "reduce_scatter": (n - 1) * result,
        "all_to_all": (n - 1) * result / n,
        "collective_permute": result,
    }[move.kind]
    return result, round(ring)
