"""What the device-local program will be: one pure function of the state, `plan(state)`.

A plan is the SPMD program as arrays: local values (a global value in a placement) and steps in
schedule order, each an op run on local values or one reshard. Cost, report and search read it;
the lowering materialises it step for step (DESIGN, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from ..partir_dialect.placement import Placement
from ..partir_dialect.rules.base import Kind
from .deferral import Deferrals, find_deferrals, produced_pending
from .exchange import Piece, Slide, pieces
from .graph import ARGUMENT, RESULT, Graph
from .local import EXCHANGED, MASK
from .order import dimension_ranks
from .route import (
    COLLECTIVES,
    Dims,
    Grid,
    Halo,
    Move,
    Pending,
    Spot,
    local_shape,
    move_bytes,
    received_shape,
    route,
)
from .state import State


@dataclass(frozen=True, slots=True)
class LocalValue:
    """A global value in one placement: local shape and bytes on one device."""

    value: int
    spot: Spot
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Compute:
    """One op on local values. `rewrites` are the local rewrites it needs: (name, factor, axes);
    `halos` what it has received of other tiles for them; `count` is how often it runs."""

    op: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    rewrites: tuple[tuple[str, int, tuple[int, ...]], ...] = ()
    count: int = 1
    halos: tuple[int, ...] = ()

    @property
    def reads(self) -> tuple[int, ...]:
        """Every local value that the op reads."""
        return (*self.inputs, *self.halos)


@dataclass(frozen=True, slots=True)
class Reshard:
    """One collective or free slice, with its cost and where it comes from.

    `bytes` is the result size per device, `ring_bytes` what a device sends, both for one execution;
    `count` the number of executions, `region` the region of control flow it is in. `uses` are the
    (op, operand) pairs it serves, `tactic` the index of the tactic statement whose decision made
    the two placements differ, `fallback` whether an op that cannot be tiled asked for it.
    """

    move: Move
    source: int
    target: int
    bytes: int
    ring_bytes: int
    uses: tuple[tuple[int, int], ...]
    origins: tuple[int, ...]
    tactic: int
    fallback: bool = False
    count: int = 1
    region: int = 0

    @property
    def kind(self) -> str:
        return self.move.kind


@dataclass(frozen=True, slots=True)
class Fallback:
    """An operand that had to be gathered because its op cannot be tiled there."""

    op: int
    operand: int
    axis: int
    bytes: int


@dataclass
class Plan:
    """The SPMD program on arrays; `arguments` and `results` are local values in signature order."""

    graph: Graph
    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    values: list[LocalValue] = field(default_factory=list[LocalValue])
    steps: list[Compute | Reshard] = field(default_factory=list["Compute | Reshard"])
    arguments: list[int] = field(default_factory=list[int])
    results: list[int] = field(default_factory=list[int])
    fallbacks: list[Fallback] = field(default_factory=list[Fallback])
    deferrals: Deferrals = field(default_factory=Deferrals)

    @property
    def reshards(self) -> list[Reshard]:
        """Every reshard, free slices included, in schedule order."""
        return [step for step in self.steps if isinstance(step, Reshard)]

    def counts(self) -> dict[str, dict[str, int]]:
        """For each kind of collective: count, result bytes and ring bytes per device, executed."""
        table = {kind: {"count": 0, "bytes": 0, "ring_bytes": 0} for kind in COLLECTIVES}
        for step in self.steps:
            if isinstance(step, Reshard) and step.kind in table:
                row = table[step.kind]
                row["count"] += step.count
                row["bytes"] += step.count * step.bytes
                row["ring_bytes"] += step.count * step.ring_bytes
        return table

    def placement(self, local: int) -> Placement:
        """The placement of a local value, with axis names."""
        spot = self.values[local].spot
        return Placement(
            tuple(tuple(self.axes[a] for a in dim) for dim in spot.dims),
            tuple((self.axes[a], reducer) for a, reducer in spot.pending),
        )

    def argument_bytes(self) -> int:
        """Bytes of all arguments on one device."""
        return sum(self.values[local].bytes for local in self.arguments)


def plan(state: State) -> Plan:
    """The plan of a state; pure, linear in the number of ops."""
    return _Planner(state).run()


class _Planner:
    def __init__(self, state: State) -> None:
        self.state = state
        self.graph = state.graph
        self.deferrals = find_deferrals(state)
        self.ranks = dimension_ranks(state)
        self.plan = Plan(state.graph, state.axes, state.sizes, deferrals=self.deferrals)
        self.base: dict[int, int] = {}
        self.at: dict[int, list[tuple[int, int]]] = {}
        self.region = 0
        self.users: dict[int, list[tuple[int, int]]] = {}
        self.routes: dict[tuple[Spot, Spot, tuple[int, ...]], tuple[Move, ...]] = {}

    def run(self) -> Plan:
        order = self._order()
        self._find_users(order)
        for op in order:
            self._step(op)
        return self.plan

    # --- what is wanted -----------------------------------------------------------------------

    def _order(self) -> list[int]:
        out: list[int] = []
        for op in range(len(self.graph.kinds)):
            if op not in self.deferrals.moved:
                out.extend(self.deferrals.before.get(op, ()))
                out.append(op)
        return out

    def _operands(self, op: int) -> tuple[int, ...]:
        return self.deferrals.operands.get(op) or self.graph.operands[op]

    def _find_users(self, order: Iterable[int]) -> None:
        for op in order:
            for k, value in enumerate(self._operands(op)):
                self.users.setdefault(value, []).append((op, k))

    def _axes(self, op: int, factor: int) -> tuple[int, ...]:
        """The axes that tile a factor of the op, in order, less those pending through it."""
        slot = self.graph.slots[op]
        axes = [axis for axis, f in self.state.nests[slot] if f == factor]
        passing = self.deferrals.through.get(op)
        if passing:
            axes = [axis for axis in axes if all(axis != p for p, _ in passing)]
        if len(axes) > 1:
            axes.sort(key=lambda axis: self.ranks[slot, factor, axis])
        return tuple(axes)

    def _dims(self, op: int, table: Dims) -> Dims:
        """The placement that the op's nest gives to an operand or result with these factors."""
        if not self.state.nests[self.graph.slots[op]]:
            return ((),) * len(table)
        return tuple(
            tuple(axis for f in made_of for axis in self._axes(op, f)) for made_of in table
        )

    def _named(self, names: tuple[tuple[str, ...], ...]) -> Dims:
        """A placement by names of the mesh as it was given: each is all of its atoms."""
        axes = self.state.axes
        return tuple(
            tuple(
                a
                for name in dim
                for a, atom in enumerate(axes)
                if atom == name or (name not in axes and atom.rpartition(".")[0] == name)
            )
            for dim in names
        )

    def wanted(self, op: int, k: int) -> Spot:
        """The placement that the op wants for its operand k."""
        if op in self.graph.manual:
            return Spot(self._named(self.graph.manual[op][0][k]))
        dims = self._dims(op, self.graph.op_shapes[op].inputs[k])
        passing = self.deferrals.through.get(op)
        if passing and self.deferrals.waiting.get(self._operands(op)[k]) == passing:
            return Spot(dims, passing)
        return Spot(dims)

    def produced(self, op: int, r: int) -> Spot:
        """The placement that the op's nest gives to its result r."""
        if op in self.graph.manual:
            return Spot(self._named(self.graph.manual[op][1][r]))
        shape = self.graph.op_shapes[op]
        dims = self._dims(op, shape.outputs[r])
        passing: Pending = self.deferrals.through.get(op, ())
        return Spot(dims, passing or produced_pending(self.state, op))

    # --- steps --------------------------------------------------------------------------------

    def _step(self, op: int) -> None:
        self.region = self.graph.region_of[op]
        inputs = tuple(self._use(op, k, v) for k, v in enumerate(self._operands(op)))
        kind = self.graph.kinds[op]
        if kind == RESULT:
            self.plan.results.append(inputs[0])
            return
        outputs = tuple(
            self._local(value, self.produced(op, r))
            for r, value in enumerate(self.graph.results[op])
        )
        if kind == ARGUMENT:
            self.plan.arguments.extend(outputs)
        else:
            rewrites = self._rewrites(op)
            halos = tuple(
                self._halo(op, inputs[slide.operand], slide, piece, axes)
                for _, f, axes in rewrites
                for slide in self.graph.op_shapes[op].slides[f]
                for piece in pieces(slide, prod(self.plan.sizes[axis] for axis in axes))
                if piece.pairs
            )
            self.plan.steps.append(
                Compute(op, inputs, outputs, rewrites, self.graph.trips(op), halos)
            )
        for value, local in zip(self.graph.results[op], outputs, strict=True):
            self._settle(value, local)

    def _rewrites(self, op: int) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
        nest = self.state.nests[self.graph.slots[op]]
        if not nest:
            return ()
        factors = self.graph.op_shapes[op].factors
        found: list[tuple[str, int, tuple[int, ...]]] = []
        for f in dict.fromkeys(f for _, f in nest if f >= 0):
            name, axes = factors[f].rewrite, self._axes(op, f)
            if not axes:
                continue
            tiles = prod(self.plan.sizes[axis] for axis in axes)
            if factors[f].kind is Kind.REDUCTION and factors[f].size % tiles:
                found.append((MASK, f, axes))
            if name is not None:
                found.append((name, f, axes))
        found.sort(key=lambda rewrite: rewrite[0] not in EXCHANGED)  # what comes is not masked yet
        return tuple(found)

    def _halo(self, op: int, local: int, slide: Slide, piece: Piece, axes: tuple[int, ...]) -> int:
        """The permute that brings a piece of other tiles of an operand."""
        graph = self.graph
        held = self.plan.values[local]
        value, spot, d = held.value, held.spot, slide.dim
        along = tuple(axes if e == d else () for e in range(len(spot.dims)))
        halo = Halo(d, piece.start, piece.size, piece.pairs)
        move = Move("collective_permute", along, spot, spot, halo=halo)
        size, ring = move_bytes(move, graph.shapes[value], graph.itemsizes[value], self.plan.sizes)
        made = self._local(value, spot, received_shape(move, held.shape))
        uses = ((op, slide.operand),)
        self.plan.steps.append(
            Reshard(
                move,
                local,
                made,
                size,
                ring,
                uses,
                (graph.producer[value][0],),
                self._tactic((op,), list(uses), move),
                count=graph.regions[self.region].trips or 1,
                region=self.region,
            )
        )
        return made

    def _local(self, value: int, spot: Spot, shape: tuple[int, ...] | None = None) -> int:
        graph = self.graph
        shape = shape or local_shape(graph.shapes[value], spot.dims, self.plan.sizes)
        size = -int(-prod(shape) * graph.itemsizes[value] // 1)
        self.plan.values.append(LocalValue(value, spot, shape, size))
        return len(self.plan.values) - 1

    def _settle(self, value: int, local: int) -> None:
        """Reduces what does not wait, and gathers what a `replicate` wants whole, once for all
        uses."""
        spot = self.plan.values[local].spot
        waiting = self.deferrals.waiting.get(value)
        users = self.users.get(value, [])
        if spot.pending and not waiting:
            target = self._meeting(spot, [self.wanted(op, k) for op, k in users])
            local = self._reshard(local, target, users)
            spot = target
        replicated = [
            axis for axis in range(len(self.state.axes)) if self.state.is_replicated(value, axis)
        ]
        if replicated:
            dims = tuple(tuple(a for a in dim if a not in replicated) for dim in spot.dims)
            local = self._reshard(local, Spot(dims, spot.pending), users)
        self.base[value] = local
        self.at[value] = [(local, self.region)]

    def _meeting(self, spot: Spot, wants: list[Spot]) -> Spot:
        """The placement to which a partial value is reduced: what all of its uses begin with."""
        free = spot.tiled
        dims: list[tuple[int, ...]] = []
        for d, have in enumerate(spot.dims):
            rest = [
                want.dims[d][len(have) :] for want in wants if want.dims[d][: len(have)] == have
            ]
            common: tuple[int, ...] = ()
            if rest and len(rest) == len(wants):
                common = rest[0]
                for other in rest[1:]:
                    n = 0
                    while n < min(len(common), len(other)) and common[n] == other[n]:
                        n += 1
                    common = common[:n]
            run: list[int] = []
            for axis in common:
                if axis in free:
                    break
                run.append(axis)
            dims.append((*have, *run))
        return Spot(tuple(dims))

    def _use(self, op: int, k: int, value: int) -> int:
        base = self.base[value]
        spot = self.plan.values[base].spot
        if not spot.dims:
            return base
        target = self.wanted(op, k)
        if spot == target:
            return base
        private = self.graph.derived[value] and value not in self.state.once
        if private:
            moves = self._route(value, spot, target)
            if any(move.kind != "all_slice" for move in moves):
                return self._private(op, k, value, base, target)
        graph = self.graph
        visible = [
            local for local, region in self.at[value] if graph.is_inside(self.region, region)
        ]
        for local in visible:
            if self.plan.values[local].spot == target:
                return local
        best = min(visible, key=lambda local: self._cost(local, target))
        users = [
            (o, j)
            for o, j in self.users[value]
            if graph.is_inside(graph.region_of[o], self.region) and self.wanted(o, j) == target
        ]
        local = self._reshard(best, target, users)
        self.at[value].append((local, self.region))
        return local

    def _private(self, op: int, k: int, value: int, base: int, target: Spot) -> int:
        """A gather of a parameter for one op only (freed after it); equal operands share it."""
        operands = self._operands(op)
        for j in range(k):
            if operands[j] == value and self.wanted(op, j) == target:
                step = next(
                    s
                    for s in reversed(self.plan.steps)
                    if isinstance(s, Reshard)
                    and s.move.halo is None
                    and self.plan.values[s.target].value == value
                )
                return step.target
        return self._reshard(base, target, [(op, k)])

    def _route(self, value: int, source: Spot, target: Spot) -> tuple[Move, ...]:
        shape = self.graph.shapes[value]
        key = (source, target, shape)
        found = self.routes.get(key)
        if found is None:
            grid = Grid(shape, self.plan.sizes)
            found = self.routes[key] = route(source, target, grid)
        return found

    def _cost(self, local: int, target: Spot) -> int:
        value = self.plan.values[local]
        graph = self.graph
        return sum(
            move_bytes(m, graph.shapes[value.value], graph.itemsizes[value.value], self.plan.sizes)[
                1
            ]
            for m in self._route(value.value, value.spot, target)
        )

    def _reshard(self, local: int, target: Spot, users: list[tuple[int, int]]) -> int:
        graph, plan_ = self.graph, self.plan
        source = plan_.values[local]
        value = source.value
        origins = self.deferrals.sources(graph, graph.producer[value][0])
        for move in self._route(value, source.spot, target):
            size, ring = move_bytes(move, graph.shapes[value], graph.itemsizes[value], plan_.sizes)
            made = self._local(value, move.after)
            fallback = False
            if move.kind in ("all_gather", "all_to_all", "collective_permute"):
                fallback = self._fallbacks(users, move, size)
            plan_.steps.append(
                Reshard(
                    move,
                    local,
                    made,
                    size,
                    ring,
                    tuple(users),
                    origins,
                    self._tactic(origins, users, move),
                    fallback,
                    graph.regions[self.region].trips or 1,
                    self.region,
                )
            )
            local = made
        return local

    def _fallbacks(self, users: list[tuple[int, int]], move: Move, size: int) -> bool:
        """Notes the uses whose op cannot be tiled along the gathered axis."""
        found = False
        for d, axes in enumerate(move.axes):
            for axis in axes:
                for op, k in users:
                    if self._cannot(op, k, d, axis):
                        self.plan.fallbacks.append(Fallback(op, k, axis, size))
                        found = True
        return found

    def _cannot(self, op: int, k: int, d: int, axis: int) -> bool:
        shape = self.graph.op_shapes[op]
        if self.state.entry[axis][self.graph.slots[op]] >= 0:
            return False
        made_of = shape.inputs[k][d]
        return bool(made_of) and self.state.factor_for(op, made_of, axis) < 0

    def _tactic(self, origins: tuple[int, ...], users: list[tuple[int, int]], move: Move) -> int:
        """The latest tactic statement that decided one of the two placements."""
        step = self.state.step
        slots = self.graph.slots
        ops = [*origins, *(op for op, _ in users)]
        return max(
            (
                step[slots[op], axis]
                for op in ops
                for axis in move.group
                if (slots[op], axis) in step
            ),
            default=-1,
        )
