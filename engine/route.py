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
class Move:
    """One reshard: `kind` is the collective (or `all_slice`); `axes[d]` are the axes that it takes
    from or gives to dimension d (one entry, the axes, for `all_reduce`); `dims` are (gather, slice)
    of an all_to_all; `reducer` is ⊕ of a reduction; `before` and `after` are the placements."""

    kind: str
    axes: Dims
    before: Spot
    after: Spot
    reducer: str | None = None
    dims: tuple[int, int] | None = None

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


def route(source: Spot, target: Spot) -> tuple[Move, ...]:
    """The moves from `source` to `target`; what stays pending is what the target has pending."""
    moves: list[Move] = []
    at = source
    at = _pre_slice(at, target, moves)
    at = _reduce(at, target, moves)
    at = _exchange(at, target, moves)
    at = _slice(at, target, moves)
    at = _gather(at, target, moves)
    at = _slice(at, target, moves)
    assert at == target, (source, target, at)
    return tuple(moves)


def _only(rank: int, d: int, axes: tuple[int, ...]) -> Dims:
    return tuple(axes if e == d else () for e in range(rank))


def _with_dim(at: Spot, d: int, axes: tuple[int, ...]) -> Dims:
    return (*at.dims[:d], axes, *at.dims[d + 1 :])


def _add(at: Spot, extra: Dims, moves: list[Move]) -> Spot:
    if not any(extra):
        return at
    after = Spot(tuple(a + b for a, b in zip(at.dims, extra, strict=True)), at.pending)
    moves.append(Move("all_slice", extra, at, after))
    return after


def _pre_slice(at: Spot, target: Spot, moves: list[Move]) -> Spot:
    """Slices that may come before the reductions, so that those move fewer bytes."""
    if not at.pending:
        return at
    tiled, pending = at.tiled, at.pending_axes
    extra: list[tuple[int, ...]] = []
    for have, want in zip(at.dims, target.dims, strict=True):
        run: list[int] = []
        if want[: len(have)] == have:
            for axis in want[len(have) :]:
                if axis in pending or axis in tiled:
                    break
                run.append(axis)
        extra.append(tuple(run))
    return _add(at, tuple(extra), moves)


def _reduce(at: Spot, target: Spot, moves: list[Move]) -> Spot:
    kept = target.pending_axes
    for reducer in dict.fromkeys(r for axis, r in at.pending if axis not in kept):
        axes = [axis for axis, r in at.pending if r == reducer and axis not in kept]
        for d, want in enumerate(target.dims):
            have = at.dims[d]
            run: list[int] = []
            if want[: len(have)] == have:
                for axis in want[len(have) :]:
                    if axis not in axes:
                        break
                    run.append(axis)
            if run:
                after = Spot(
                    _with_dim(at, d, have + tuple(run)),
                    tuple(p for p in at.pending if p[0] not in run),
                )
                scatter = _only(len(at.dims), d, tuple(run))
                moves.append(Move("reduce_scatter", scatter, at, after, reducer))
                at = after
                axes = [axis for axis in axes if axis not in run]
        if axes:
            after = Spot(at.dims, tuple(p for p in at.pending if p[0] not in axes))
            moves.append(Move("all_reduce", (tuple(axes),), at, after, reducer))
            at = after
    return at


def _exchange(at: Spot, target: Spot, moves: list[Move]) -> Spot:
    """all_to_all: the minor axes of one dimension become the minor axes of another."""
    rank = len(at.dims)
    for d1 in range(rank):
        have, want = at.dims[d1], target.dims[d1]
        leaving = have[len(want) :]
        if not leaving or have[: len(want)] != want:
            continue
        for d2 in range(rank):
            if d2 != d1 and target.dims[d2] == at.dims[d2] + leaving:
                dims = list(at.dims)
                dims[d1], dims[d2] = want, target.dims[d2]
                after = Spot(tuple(dims), at.pending)
                moves.append(
                    Move("all_to_all", _only(rank, d1, leaving), at, after, None, (d1, d2))
                )
                at = after
                break
    return at


def _slice(at: Spot, target: Spot, moves: list[Move]) -> Spot:
    tiled = at.tiled
    extra: list[tuple[int, ...]] = []
    for have, want in zip(at.dims, target.dims, strict=True):
        run: list[int] = []
        if want[: len(have)] == have:
            for axis in want[len(have) :]:
                if axis in tiled:
                    break
                run.append(axis)
        extra.append(tuple(run))
    return _add(at, tuple(extra), moves)


def _run(wanted: tuple[int, ...], among: tuple[int, ...]) -> tuple[int, ...]:
    """The longest beginning of `wanted` that lies in `among`."""
    count = 0
    while count < len(wanted) and wanted[count] in among:
        count += 1
    return wanted[:count]


def _gather(at: Spot, target: Spot, moves: list[Move]) -> Spot:
    for d, want in enumerate(target.dims):
        have = at.dims[d]
        common = 0
        while common < min(len(have), len(want)) and have[common] == want[common]:
            common += 1
        leaving = have[common:]
        if not leaving:
            continue
        staying = _run(want[common:], leaving)
        gone = tuple(axis for axis in leaving if axis not in staying)
        if staying:  # the axes that go must be the minor ones, and the others in the wanted order
            order = have[:common] + staying + gone
            if order != have:
                after = Spot(_with_dim(at, d, order), at.pending)
                moves.append(Move("collective_permute", _only(len(at.dims), d, leaving), at, after))
                at = after
        if gone:
            after = Spot(_with_dim(at, d, have[:common] + staying), at.pending)
            moves.append(Move("all_gather", _only(len(at.dims), d, gone), at, after))
            at = after
    return at


def move_bytes(
    move: Move, shape: tuple[int, ...], itemsize: float, sizes: tuple[int, ...]
) -> tuple[int, int]:
    """(result bytes per device, bytes a device sends by ring algorithms) of one move.

    Ring figures as in NCCL's and XLA's analysis, for n devices and b result bytes: all_reduce
    2(n-1)/n·b, all_gather (n-1)/n·b, reduce_scatter (n-1)·b, all_to_all (n-1)/n·b, permute b.
    """
    elements = prod(local_shape(shape, move.after.dims, sizes))
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
