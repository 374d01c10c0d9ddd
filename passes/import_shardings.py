"""`partir-import-shardings`: what a program says of placements becomes its nests.

Precondition: any valid module; the mesh is the program's own (`sdy.mesh`) or the option's.
Postcondition: prepared and in nest form, every sharding of an argument, result or constraint taken
as it was written, priorities as tactic order: p0 first, one propagation each. What an op itself
cannot take is a constraint behind it. What cannot be expressed is an error, or a note.

```mlir
sdy.mesh @mesh = <["batch"=4]>
func.func @main(%x: tensor<256x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}, {}]>}) …
```
becomes
```mlir
func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>, …}) …
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..engine.build import Source, build
from ..engine.graph import EXIT, Graph, pair
from ..engine.roles import donations, find_roles
from ..engine.session import Session
from ..engine.state import ANY, NONE
from ..partir_dialect.errors import PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.sdy import (
    AxisRef,
    DimSharding,
    Sharding,
    ShardingAttr,
    ShardingConstraintOp,
    ShardingPerValueAttr,
)
from ..partir_dialect.sdy_checks import mesh_of
from .nest_state import store
from .prepare import prepare
from .sharding_forms import (
    CONSTRAINT,
    GROUP,
    MANUAL,
    SHARDING,
    ShardingError,
    choose_mesh,
    normalise_shardings,
    place_of,
)


@dataclass(frozen=True)
class Given:
    """One sharding of a program: of dimension table `dims` of graph op `op`.

    `fixed` are borders and constraints, which have it exactly; an op's own may be a wish. `where`
    is for messages; `anchor` the IR op (None at main's border, where nothing else will do).
    """

    op: int
    dims: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    sharding: Sharding
    fixed: bool
    where: str
    anchor: Operation | None = None


@dataclass
class Imported:
    """A program with its own shardings taken: the session, the way back to the IR, and notes on
    what is not as it was written."""

    session: Session
    source: Source
    notes: list[str] = field(default_factory=list[str])


# --- before the graph -------------------------------------------------------------------------


def prepare_shardings(module: ModuleOp, mesh: Mesh | None, *, keep: bool) -> list[str]:
    """Writes the module's shardings in one way and prepares it, in place; with `keep` false they
    go, but for the borders of manual computations. Returns notes. Raises `PartirError`."""
    notes = normalise_shardings(module, mesh, keep=keep)
    prepare(module)
    _clean_manual(module)
    return notes


def _clean_manual(module: ModuleOp) -> None:
    """What was inlined into a region that is for each device places nothing there."""
    for op in list(module.walk()):
        if op.name == MANUAL:
            for inner in [each for region in op.regions for each in region.walk()]:
                inner.attributes.pop(SHARDING, None)
                if inner.name == CONSTRAINT:
                    inner.results[0].replace_all_uses_with(inner.operands[0])
                    inner.detach()
                    inner.erase()


def build_given(module: ModuleOp, mesh: Mesh, notes: list[str]) -> tuple[Graph, Source]:
    """The graph of a module that `prepare_shardings` has prepared. Where an op cannot be cut as its
    sharding says, a constraint behind it says it instead (and a note is added)."""
    graph, source = build(module)
    if _place_behind(graph, source, mesh, notes):
        graph, source = build(module)
    return graph, source


def _place_behind(graph: Graph, source: Source, mesh: Mesh, notes: list[str]) -> bool:
    wishes = [given for given in _all_given(graph, source) if not given.fixed]
    if not wishes:
        return False
    session = Session(graph, mesh)
    _refine(session, wishes)
    refused: dict[Operation, None] = {}
    for op, members in _by_anchor(wishes).items():
        mark = session.state.mark()
        early = all(dim.priority in (None, 0) for g in members for dim in g.sharding.dims)
        plain = not any(g.sharding.replicated for g in members)
        if not (early and plain and all(_fits(session, given) for given in members)):
            refused[op] = None
        session.state.undo(mark)
    for op in refused:
        _constrain_results(op)
        notes.append(f"{place_of(op)}: cannot be cut as its sharding says; its result is")
    return bool(refused)


def _by_anchor(wishes: Iterable[Given]) -> dict[Operation, list[Given]]:
    found: dict[Operation, list[Given]] = {}
    for given in wishes:
        assert given.anchor is not None
        found.setdefault(given.anchor, []).append(given)
    return found


def _fits(session: Session, given: Given) -> bool:
    return all(_take_dim(session, given, d) is None for d in range(len(given.shape)))


def _constrain_results(op: Operation) -> None:
    """Turns the sharding of an op into constraints on its results."""
    attribute = op.attributes.pop(SHARDING)
    assert op.parent is not None
    for result, sharding in zip(op.results, _per_result(attribute), strict=True):
        if isinstance(result.type, TensorType):
            made = ShardingConstraintOp(result, sharding)
            made.location = op.location
            op.parent.insert_op_after(made, op)
            result.replace_uses_with_if(
                made.results[0], lambda use, made=made: use.operation is not made
            )


# --- what is given ----------------------------------------------------------------------------


def _per_result(attribute: object) -> tuple[Sharding, ...]:
    if isinstance(attribute, ShardingPerValueAttr):
        return attribute.data
    return (attribute.data,) if isinstance(attribute, ShardingAttr) else ()


def _all_given(graph: Graph, source: Source) -> Iterator[Given]:
    """Every sharding in the module, borders first."""
    function = source.function
    arguments = _rows(function.arg_attrs)
    for argument in graph.arguments if arguments else ():
        index = argument.op
        sharding = arguments[index]
        if sharding is not None:
            shape = graph.shapes[argument.value]
            dims = graph.op_shapes[argument.op].outputs[0]
            where = f"the sharding of argument {argument.name}"
            yield Given(argument.op, dims, shape, sharding, True, where)
    results = _rows(function.res_attrs)
    for k, outcome in enumerate(graph.outcomes if results else ()):
        sharding = results[k]
        if sharding is not None:
            shape = graph.shapes[outcome.value]
            dims = graph.op_shapes[outcome.op].inputs[0]
            where = f"the sharding of {outcome.name}"
            yield Given(outcome.op, dims, shape, sharding, True, where)
    yield from _of_ops(graph, source)


def _rows(rows: ArrayAttr[DictionaryAttr] | None) -> list[Sharding | None]:
    found: list[Sharding | None] = []
    for row in rows.data if rows is not None else ():
        attribute = row.data.get(SHARDING)
        found.append(attribute.data if isinstance(attribute, ShardingAttr) else None)
    return found


def _of_ops(graph: Graph, source: Source) -> Iterator[Given]:
    for number, op in source.ops.items():
        fixed = isinstance(op, ShardingConstraintOp)
        shardings = (
            (op.sharding.data,) if fixed else _per_result(op.attributes.get(SHARDING))  # pyright: ignore
        )
        if number in graph.manual:
            continue
        for r, sharding in zip(range(len(graph.results[number])), shardings, strict=False):
            shape = graph.shapes[graph.results[number][r]]
            dims = graph.op_shapes[number].outputs[r]
            yield Given(number, dims, shape, sharding, fixed, place_of(op), op)
    for number, place in source.places.items():
        shardings = _per_result(place.op.attributes.get(SHARDING))
        if graph.kinds[number] == EXIT and place.index < len(shardings):
            shape = graph.shapes[graph.results[number][0]]
            dims = graph.op_shapes[number].outputs[0]
            sharding = shardings[place.index]
            yield Given(number, dims, shape, sharding, False, place_of(place.op), place.op)


# --- taking them ------------------------------------------------------------------------------


def take_shardings(session: Session, source: Source, notes: list[str]) -> None:
    """Decides all shardings of the module in the session, priority by priority, each with one
    propagation; where none were kept, those are the borders of manual computations. Raises
    `ShardingError` for what cannot be."""
    given = [g for g in _all_given(session.graph, source) if not _on_one_device(g, source, notes)]
    if not given:
        return
    _refine(session, given)
    _close(session.graph, given)
    groups = _groups(session, source)
    for priority in sorted({0, *(_priority(d) for g in given for d in g.sharding.dims)}):
        _reserve(session.graph, given, priority)
        session.begin(f"the program's own shardings, priority {priority}")
        for each in given:
            _take(session, each, priority, notes)
        session.propagate()
        while _agree(session, groups):
            session.propagate()


def _priority(dim: DimSharding) -> int:
    return dim.priority or 0


def _on_one_device(given: Given, source: Source, notes: list[str]) -> bool:
    """A sharding over the mesh of one device: an error at the border, else every device does it."""
    mesh = mesh_of(source.function, given.sharding)
    if mesh is None or not mesh.is_maximal:
        return False
    if given.fixed:
        raise ShardingError(
            f"{given.where}: a value on one device only cannot be expressed",
            written=str(given.sharding),
        )
    notes.append(f"{given.where}: every device does what was for device {mesh.device_ids[0]}")
    return True


def _refine(session: Session, given: Iterable[Given]) -> None:
    """Makes every part of an axis that a sharding names a union of atoms."""
    bounds: dict[str, dict[int, AxisRef]] = {}
    for each in given:
        for axis in each.sharding.axes_used():
            if axis.size is not None and axis.before is not None:
                cuts = bounds.setdefault(axis.name, {})
                cuts.setdefault(axis.before, axis)
                cuts.setdefault(axis.before * axis.size, axis)
    for name, cuts in bounds.items():
        whole = session.mesh.size(name)
        points = sorted({1, whole, *cuts})
        parts: list[int] = []
        for low, high in pairwise(points):
            if high % low:
                raise ShardingError(
                    f"the parts of axis {name}={whole} overlap: {cuts.get(high, name)} does not "
                    f"begin or end where {cuts.get(low, name)} does"
                )
            parts.append(high // low)
        session.refine(name, tuple(parts))


def atoms_of(session: Session, axis: AxisRef) -> list[int]:
    """The atoms that an axis or a part of one is made of, major to minor, as indices."""
    state = session.state
    found: list[int] = []
    before = 1
    for atom in session.atoms[axis.name]:
        index = state.axes.index(atom)
        size = state.sizes[index]
        if (
            axis.size is None
            or axis.before is None
            or axis.before <= before < axis.before * axis.size
        ):
            found.append(index)
        before *= size
    return found


def _close(graph: Graph, given: Iterable[Given]) -> None:
    """Notes which factors take no further axis, and that the order of axes is as written."""
    closed: dict[int, set[int]] = {}
    for each in given:
        if each.sharding.rank != len(each.shape):
            raise ShardingError(
                f"{each.where}: a sharding of rank {len(each.shape)} is wanted, got: "
                f"{each.sharding.rank}",
                written=str(each.sharding),
            )
        factors = closed.setdefault(graph.slots[each.op], set())
        for made_of, dim in zip(each.dims, each.sharding.dims, strict=True):
            if not dim.is_open:
                factors.update(made_of)
    graph.given.update({slot: frozenset(factors) for slot, factors in closed.items()})


def _reserve(graph: Graph, given: Iterable[Given], priority: int) -> None:
    """Keeps the axes of later priorities from what propagates before them."""
    kept: dict[int, set[str]] = {}
    for each in given:
        for dim in each.sharding.dims:
            if _priority(dim) > priority and dim.axes:
                kept.setdefault(graph.slots[each.op], set()).update(a.name for a in dim.axes)
    graph.reserved.clear()
    graph.reserved.update({slot: frozenset(names) for slot, names in kept.items()})


def _take(session: Session, given: Given, priority: int, notes: list[str]) -> None:
    """Decides the dimensions of that priority; at priority 0 also what is said to be whole."""
    if given.sharding.unreduced:
        raise ShardingError(
            f"{given.where}: a value that is still to be summed cannot be expressed",
            written=str(given.sharding),
        )
    slot = session.graph.slots[given.op]
    closed = session.graph.given.pop(slot)
    for d, dim in enumerate(given.sharding.dims):
        if _priority(dim) == priority:
            fault = _take_dim(session, given, d)
            if fault is not None and given.anchor is None and priority == 0:
                raise ShardingError(f"{given.where}: {fault}", written=str(given.sharding))
            if fault is not None:
                notes.append(f"{given.where}: {fault}")
    session.graph.given[slot] = closed
    if given.fixed and priority == 0:
        _whole(session, given)


def _whole(session: Session, given: Given) -> None:
    """Axes that are replicated, or that a closed sharding does not use, are decided to be whole."""
    state = session.state
    slot = session.graph.slots[given.op]
    used = {a for dim in given.sharding.dims for axis in dim.axes for a in atoms_of(session, axis)}
    free = set(range(len(state.axes))) - used
    if any(dim.is_open for dim in given.sharding.dims):
        replicated = {a for axis in given.sharding.replicated for a in atoms_of(session, axis)}
        free &= replicated
    for axis in sorted(free):
        if state.entry[axis][slot] == NONE:
            state.decide(slot, axis, ANY)


def _take_dim(session: Session, given: Given, d: int) -> str | None:
    """Decides the axes of one dimension, in order; what is in the way, or None."""
    state, op = session.state, given.op
    slot = session.graph.slots[op]
    for axis in given.sharding.dims[d].axes:
        for atom in atoms_of(session, axis):
            size = state.sizes[atom]
            if size == 1 and given.shape[d] <= 1:
                continue  # an axis of one device cuts nothing
            factor = state.factor_for(op, given.dims[d], atom)
            known = state.entry[atom][slot]
            if known >= 0 and known in given.dims[d]:
                continue
            if known != NONE:
                return f"axis {axis} is used otherwise, so dimension {d} cannot be cut by it"
            if factor < 0:
                return _why_not(session, given, d)
            state.decide(slot, atom, factor)
    return None


def _why_not(session: Session, given: Given, d: int) -> str:
    axes = given.sharding.dims[d].axes
    tiles = 1
    for axis in axes:
        for atom in atoms_of(session, axis):
            tiles *= session.state.sizes[atom]
    names = ", ".join(map(str, axes))
    return f"dimension {d} of size {given.shape[d]} cannot be cut in {tiles} by {names}"


# --- groups -----------------------------------------------------------------------------------


def _groups(session: Session, source: Source) -> list[list[int]]:
    """The values of each sharding group."""
    found: dict[int, list[int]] = {}
    for number, op in source.ops.items():
        group = op.attributes.get(GROUP)
        if isinstance(group, IntegerAttr):
            members = found.setdefault(group.value.data, [])
            members.append(session.graph.results[number][0])
    return list(found.values())


def _agree(session: Session, groups: Iterable[list[int]]) -> bool:
    """Cuts every member of a group as some member is cut; whether something was decided."""
    state, graph = session.state, session.graph
    changed = False
    for members in groups:
        for axis in range(len(state.axes)):
            dims = {state.tile[axis][value] for value in members} - {-1}
            if len(dims) != 1:
                continue
            (d,) = dims
            for value in members:
                op, r = graph.producer[value]
                slot = graph.slots[op]
                if state.entry[axis][slot] == NONE:
                    factor = state.factor_for(op, graph.op_shapes[op].outputs[r][d], axis)
                    if factor >= 0:
                        state.decide(slot, axis, factor)
                        changed = True
    return changed


# --- pairs ------------------------------------------------------------------------------------


def agreeing_pairs(graph: Graph, source: Source, pairs: Mapping[int, int]) -> dict[int, int]:
    """The pairs of an argument and the result it becomes that the program does not place apart."""
    arguments, results = _rows(source.function.arg_attrs), _rows(source.function.res_attrs)

    def said(rows: list[Sharding | None], index: int) -> tuple[DimSharding, ...] | None:
        sharding = rows[index] if index < len(rows) else None
        return sharding.dims if sharding is not None else None

    kept: dict[int, int] = {}
    for a, r in pairs.items():
        before, after = said(arguments, a), said(results, r)
        if before is None or after is None or before == after:
            kept[a] = r
    return kept


# --- the whole --------------------------------------------------------------------------------


def import_shardings(module: ModuleOp, mesh: Mesh | None = None) -> Imported:
    """Prepares the module and takes its own shardings; the session is over the program's mesh, or
    the given one. Raises `PartirError`."""
    mesh = choose_mesh(module, mesh)
    if mesh is None:
        raise PartirError('the module has no mesh: give one, as in mesh="batch=4,model=2"')
    notes = prepare_shardings(module, mesh, keep=True)
    graph, source = build_given(module, mesh, notes)
    roles = find_roles(graph, donations(source.function))
    pair(graph, agreeing_pairs(graph, source, roles.pairs))
    session = Session(graph, mesh)
    take_shardings(session, source, notes)
    return Imported(session, source, notes)


@dataclass(frozen=True)
class ImportShardingsPass(ModulePass):
    """Turns the shardings of a program into nests: see the module."""

    name = "partir-import-shardings"

    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            taken = import_shardings(op, Mesh.parse(self.mesh) if self.mesh else None)
        except PartirError as error:
            raise PassFailedException(error.render().removeprefix("error: ")) from error
        store(taken.session, taken.source)
