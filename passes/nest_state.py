"""How the state of a session is written in the IR, and read back: nest form.

`load` builds the graph of a module, pairs arguments with the results that alias them, and takes the
decisions that its nests record. `store` writes every op's nest, even an empty one, marks the module
as nest form and puts `partir.stop` and `partir.replicate` ops where the session has them.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ..engine.build import Place, Source, build, main_of
from ..engine.graph import EXIT, pair
from ..engine.roles import donations, find_roles
from ..engine.session import Session
from ..engine.state import ANY, NONE, State
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir import ReplicateOp, StopOp
from ..partir_dialect.partir_attributes import MeshAttr, NestAttr, NestEntry
from ..partir_dialect.partir_types import CARRIES, NEST, elements
from .generated import PLACED_REGIONS
from .nest_form import add_empty_nests

MESH = "partir.mesh"


def load(module: ModuleOp, mesh: Mesh | None = None) -> tuple[Session, Source]:
    """A session over the module with the decisions of its nests; the mesh is the module's own
    unless one is given. Raises `PassFailedException` without a mesh or with a nest that
    contradicts."""
    own = module.attributes.get(MESH)
    if isinstance(own, MeshAttr):
        mesh = own.data
    if mesh is None:
        raise PassFailedException('the module has no mesh: give one, as in mesh="batch=4,model=2"')
    graph, source = build(module)
    roles = find_roles(graph, donations(main_of(module)))
    pair(graph, dict(roles.pairs))
    session = Session(graph, mesh)
    session.begin("the nests of the module")
    for op, nest in _nests(session, source):
        _take(session.state, op, nest)
    return session, source


def _nests(session: Session, source: Source) -> list[tuple[int, NestAttr]]:
    """(op, nest) for every op, argument and result that has a nest attribute."""
    graph, function = session.graph, source.function
    found: list[tuple[int, Attribute | None]] = []
    for entries, attributes in (
        ([a.op for a in graph.arguments], function.arg_attrs),
        ([r.op for r in graph.outcomes], function.res_attrs),
    ):
        if attributes is not None:
            for op, dictionary in zip(entries, attributes.data, strict=True):
                found.append((op, dictionary.data.get(NEST)))
    found.extend((number, op.attributes.get(NEST)) for number, op in source.ops.items())
    for number, place in _exits(session, source):
        nests = elements(place.op.attributes.get(CARRIES))
        if place.index < len(nests):
            found.append((number, nests[place.index]))
    return [(op, nest) for op, nest in found if isinstance(nest, NestAttr)]


def _exits(session: Session, source: Source) -> list[tuple[int, Place]]:
    """The pseudo-op of each result of control flow, in order."""
    kinds = session.graph.kinds
    return [(op, place) for op, place in sorted(source.places.items()) if kinds[op] == EXIT]


def _take(state: State, op: int, nest: NestAttr) -> None:
    slot = state.graph.slots[op]
    for entry in nest.data:
        if entry.axis not in state.axes:
            raise PassFailedException(f"a nest names an axis that the mesh lacks: {entry.axis}")
        axis = state.axes.index(entry.axis)
        factor = ANY if entry.factor is None else entry.factor
        known = state.entry[axis][slot]
        if known == factor:
            continue
        usable = state.graph.op_shapes[op].usable
        if known != NONE or (factor >= 0 and not (factor < len(usable) and usable[factor])):
            raise PassFailedException(
                f"{state.graph.kinds[op]} at {state.graph.locations[op]} cannot have the nest "
                f"entry {entry}"
            )
        state.decide(slot, axis, factor)


def store(session: Session, source: Source) -> None:
    """Writes the state into the module of `source`."""
    state = session.state
    module = source.module
    module.attributes[MESH] = MeshAttr(state.mesh)
    graph = session.graph
    for number, op in source.ops.items():
        if op.name not in PLACED_REGIONS:
            op.attributes[NEST] = _nest(state, number)
    function = source.function
    function.properties["arg_attrs"] = _with_nests(
        function.arg_attrs, [_nest(state, a.op) for a in graph.arguments]
    )
    function.properties["res_attrs"] = _with_nests(
        function.res_attrs, [_nest(state, r.op) for r in graph.outcomes]
    )
    carries: dict[Operation, list[NestAttr]] = {}
    for number, place in _exits(session, source):
        carries.setdefault(place.op, []).append(_nest(state, number))
    for op, nests in carries.items():
        op.attributes[CARRIES] = cast("Attribute", ArrayAttr(nests))
    _store_marks(session, source)
    add_empty_nests(module)


def _nest(state: State, op: int) -> NestAttr:
    return NestAttr(
        NestEntry(state.axes[axis], factor if factor >= 0 else None)
        for axis, factor in state.nests[state.graph.slots[op]]
    )


def _with_nests(old: ArrayAttr[DictionaryAttr] | None, nests: list[NestAttr]) -> Attribute:
    kept: list[dict[str, Attribute]] = [{} for _ in nests]
    if old is not None:
        kept = [dict(d.data) for d in old.data]
    rows = [
        DictionaryAttr({**attributes, NEST: nest})
        for attributes, nest in zip(kept, nests, strict=True)
    ]
    return cast("Attribute", ArrayAttr(rows))


def _store_marks(session: Session, source: Source) -> None:
    """Puts a mark behind every value that the session stops or replicates and no mark covers
    yet."""
    state, graph = session.state, session.graph
    marked: dict[tuple[int, bool], list[str]] = {}
    for axis, barrier in enumerate(state.barrier):
        for value in barrier:
            covered = graph.marks.get((value, state.axes[axis]))
            if covered is None:
                key = (value, state.is_replicated(value, axis))
                marked.setdefault(key, []).append(state.axes[axis])
    for (value, replicated), axes in marked.items():
        _mark(source, source.values[value], ReplicateOp if replicated else StopOp, axes)


def _mark(
    source: Source, value: SSAValue, cls: type[ReplicateOp] | type[StopOp], axes: list[str]
) -> None:
    mark = cls(value, axes)
    mark.attributes[NEST] = NestAttr()
    block = source.function.body.block
    if isinstance(value.owner, Operation):
        mark.location = value.owner.location
        block.insert_op_after(mark, value.owner)
    else:
        assert block.first_op is not None
        block.insert_op_before(mark, block.first_op)
    value.replace_uses_with_if(mark.results[0], lambda use: use.operation is not mark)
