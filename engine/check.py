"""Is a plan well typed? Every step checked against the rules, independently of how it was decided.

A local value has a type: the axes that tile each dimension and the axes over which it is partial.
An op is well typed if one assignment of axes to its factors explains the types of all its operands
and results; a reshard if it is the collective that leads from one type to the other. A plan that
misses a reduction, or calls a partial value whole, fails here without anything being run.
"""

from __future__ import annotations

from math import prod

from ..partir_dialect.rules.base import Dims
from .exchange import Slide
from .graph import CARRY_KINDS, Graph
from .plan import Compute, LocalValue, Plan, Reshard
from .route import Halo, Move, Pending, Spot, local_shape, received_shape


class PlanTypeError(AssertionError):
    """A step of a plan that is ill typed: a fault of ours, not of the user."""


def check_plan(plan: Plan) -> None:
    """Raises `PlanTypeError` at the first step that is ill typed."""
    graph = plan.graph
    for argument, local in zip(graph.arguments, plan.arguments, strict=True):
        _require(plan.values[local].value == argument.value, "argument", argument.name)
        _require(not plan.values[local].spot.pending, "an argument is never partial", argument.name)
    defined = set(plan.arguments)
    made: dict[int, Reshard] = {}
    for step in plan.steps:
        if isinstance(step, Compute):
            _require(defined.issuperset(step.reads), "used before it is made", step)
            _check_compute(graph, plan, step, made)
            defined.update(step.outputs)
        else:
            _require(step.source in defined, "used before it is made", step)
            _check_reshard(plan, step)
            defined.add(step.target)
            made[step.target] = step
    _check_border(graph, plan)
    _check_carries(graph, plan)


def _check_carries(graph: Graph, plan: Plan) -> None:
    """All values of one loop carry are placed alike."""
    spots: dict[int, Spot] = {}
    for step in plan.steps:
        if isinstance(step, Compute) and graph.kinds[step.op] in CARRY_KINDS:
            slot = graph.slots[step.op]
            for local in (*step.inputs, *step.outputs):
                spot = plan.values[local].spot
                known = spots.setdefault(slot, spot)
                _require(spot == known, "a carry is placed in one way", graph.locations[slot])
                _require(not spot.pending, "a carry is never partial", graph.locations[slot])


def _require(condition: bool, message: str, what: object) -> None:
    if not condition:
        raise PlanTypeError(f"{message}, got: {what}")


def _check_border(graph: Graph, plan: Plan) -> None:
    for outcome, local in zip(graph.outcomes, plan.results, strict=True):
        value = plan.values[local]
        _require(value.value == outcome.value, "result", outcome.name)
        _require(not value.spot.pending, "a result is never partial", outcome.name)
        if outcome.alias is not None:
            carried = plan.values[plan.arguments[outcome.alias]].spot
            _require(
                value.spot == carried, "a result is placed as the argument it aliases", outcome.name
            )


def _check_compute(graph: Graph, plan: Plan, step: Compute, made: dict[int, Reshard]) -> None:
    shape = graph.op_shapes[step.op]
    if step.op in graph.manual:
        for local in (*step.inputs, *step.outputs):
            _require(not plan.values[local].spot.pending, "a region takes no partial value", step)
        return
    spots = [plan.values[local].spot for local in (*step.inputs, *step.outputs)]
    tables = [*shape.inputs, *shape.outputs]
    where = f"{graph.kinds[step.op]} at {graph.locations[step.op]}"
    on: dict[int, tuple[int, ...]] = {}
    for table, spot in zip(tables, spots, strict=True):
        for made_of, axes in zip(table, spot.dims, strict=True):
            _assign(plan, step.op, made_of, axes, on, where)
    for table, spot in zip(tables, spots, strict=True):
        for made_of, axes in zip(table, spot.dims, strict=True):
            flat = tuple(axis for f in made_of for axis in on.get(f, ()))
            _require(flat == axes, "operands and results disagree on the tiles of a factor", where)
    for f, axes in on.items():
        _require(not axes or shape.usable[f], "a factor that cannot be tiled is tiled", where)
    _check_partial(graph, plan, step, on, where)
    received = [made[local] for local in step.halos]
    _check_halos(plan, step, received, on, where)


def _check_halos(
    plan: Plan, step: Compute, received: list[Reshard], on: dict[int, tuple[int, ...]], where: str
) -> None:
    """What has been received is, with a device's own part, all that its tile of the result
    reads."""
    shape = plan.graph.op_shapes[step.op]
    for f, slides in enumerate(shape.slides):
        tiles = prod(plan.sizes[axis] for axis in on.get(f, ()))
        for slide in slides if tiles > 1 else ():
            mine = [s for s in received if s.uses == ((step.op, slide.operand),)]
            halos = [s.move.halo for s in mine if s.source == step.inputs[slide.operand]]
            for t in range(tiles):
                held = _held(slide, tiles, t, [halo for halo in halos if halo is not None])
                first = t * slide.reads(tiles)[0] + slide.reads(tiles)[1]
                wanted = range(max(first, 0), min(first + slide.reads(tiles)[2], slide.source))
                _require(held.issuperset(wanted), "a part of another tile is missing", where)


def _held(slide: Slide, tiles: int, t: int, halos: list[Halo]) -> set[int]:
    """The positions of an operand that tile t has: its own, and what came from others."""
    size = slide.source // tiles if slide.tiled else slide.source
    held = set(range(t * size, (t + 1) * size) if slide.tiled else range(size))
    for halo in halos:
        for source, target in halo.pairs:
            if target == t:
                held.update(
                    range(source * size + halo.start, source * size + halo.start + halo.size)
                )
    return held


def _assign(
    plan: Plan,
    op: int,
    made_of: tuple[int, ...],
    axes: tuple[int, ...],
    on: dict[int, tuple[int, ...]],
    where: str,
) -> None:
    """Gives the axes of one dimension to its factors, major to minor, each filled before the
    next."""
    shape = plan.graph.op_shapes[op]
    rest = list(axes)
    for position, f in enumerate(made_of):
        if position == len(made_of) - 1:
            mine = tuple(rest)
            rest = []
        else:
            left = shape.factors[f].size
            taken: list[int] = []
            while rest and left > 1 and left % plan.sizes[rest[0]] == 0:
                left //= plan.sizes[rest[0]]
                taken.append(rest.pop(0))
            mine = tuple(taken)
            _require(not rest or left == 1, "a minor factor is tiled before its major one", where)
        known = on.setdefault(f, mine)
        _require(known == mine, "operands and results disagree on the tiles of a factor", where)
    _require(not rest, "a dimension of one element is tiled", where)


def _check_partial(
    graph: Graph, plan: Plan, step: Compute, on: dict[int, tuple[int, ...]], where: str
) -> None:
    """What is partial in the results is what the op sums itself, or what a linear op carries on."""
    shape = graph.op_shapes[step.op]
    made: Pending = tuple(
        (axis, factor.reducer or "add")
        for f, factor in enumerate(shape.factors)
        if shape.partial[f]
        for axis in on.get(f, ())
    )
    hot = [k for k, local in enumerate(step.inputs) if plan.values[local].spot.pending]
    carried: Pending = ()
    if hot:
        carried = plan.values[step.inputs[hot[0]]].spot.pending
        _require(not made, "an op sums over some axes and carries others", where)
        _check_linear(graph, plan, step, hot, carried, where)
    for local in step.outputs:
        pending = plan.values[local].spot.pending
        _require(
            sorted(pending) == sorted(made or carried),
            "a result is not partial as it must be",
            where,
        )
        tiled = plan.values[local].spot.tiled
        _require(
            not any(axis in tiled for axis, _ in pending), "a result is tiled and partial", where
        )


def _check_linear(
    graph: Graph, plan: Plan, step: Compute, hot: list[int], carried: Pending, where: str
) -> None:
    reducers = {reducer for _, reducer in carried}
    axes = {axis for axis, _ in carried}
    for k, local in enumerate(step.inputs):
        spot = plan.values[local].spot
        if k in hot:
            _require(spot.pending == carried, "operands are partial over different axes", where)
        else:
            _require(not (axes & spot.tiled), "a partial value meets a tiled one", where)
    linear = any(
        reducers <= row.reducers
        and (
            set(hot) == set(row.operands) if row.joint else len(hot) == 1 and hot[0] in row.operands
        )
        for row in graph.op_shapes[step.op].rule.linear
    )
    _require(linear, "a partial value passes through an op that is not linear in it", where)


def _check_reshard(plan: Plan, step: Reshard) -> None:
    move, source, target = step.move, plan.values[step.source], plan.values[step.target]
    _require(source.value == target.value, "a reshard keeps the value", step)
    _require(source.spot == move.before and target.spot == move.after, "a reshard's types", step)
    _require(
        move.after == after(move), f"{move.kind} does not lead from one type to the other", move
    )
    _require(target.shape == received_shape(move, _tile(plan, move, target)), "its shape", step)
    for side in zip(*move.halo.pairs, strict=True) if move.halo else ():
        _require(len(set(side)) == len(side), "a tile sends and receives at most once", move)


def _tile(plan: Plan, move: Move, target: LocalValue) -> tuple[int, ...]:
    return local_shape(plan.graph.shapes[target.value], move.after.dims, plan.sizes)


def after(move: Move) -> Spot:
    """The type that a collective makes of the type before it, by its definition."""
    dims, pending = list(move.before.dims), dict(move.before.pending)
    if move.kind in ("all_slice", "reduce_scatter"):
        tiled = move.before.tiled
        for d, axes in enumerate(move.axes):
            for axis in axes:
                _require(axis not in tiled, "an axis tiles twice", move)
                scattered = pending.pop(axis, None)
                expected = move.reducer if move.kind == "reduce_scatter" else None
                _require(scattered == expected, "what is scattered was partial", move)
            dims[d] += axes
    elif move.kind == "all_gather":
        for d, axes in enumerate(move.axes):
            _require(dims[d][len(dims[d]) - len(axes) :] == axes, "gathered axes are minor", move)
            dims[d] = dims[d][: len(dims[d]) - len(axes)]
    elif move.kind == "all_reduce":
        for axis in move.axes[0]:
            _require(pending.pop(axis, None) == move.reducer, "what is reduced was partial", move)
    elif move.kind == "all_to_all":
        assert move.dims is not None
        gathered, sliced = move.dims
        axes = move.group
        _require(dims[gathered][len(dims[gathered]) - len(axes) :] == axes, "exchanged axes", move)
        dims[gathered] = dims[gathered][: len(dims[gathered]) - len(axes)]
        dims[sliced] += axes
    else:
        return _permuted(move)
    return Spot(tuple(dims), tuple(pending.items()))


def _permuted(move: Move) -> Spot:
    """A permute may only change the order of the axes within a dimension."""
    before: Dims = move.before.dims
    for d, axes in enumerate(move.after.dims):
        _require(sorted(axes) == sorted(before[d]), "a permute keeps the axes of a dimension", move)
    _require(move.kind == "collective_permute", "a known collective", move)
    return Spot(move.after.dims, move.before.pending)
