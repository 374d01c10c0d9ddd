"""What do the nests of a module mean? Every op with a nest becomes the loops that it stands for.

Precondition: nest form (`partir.form = "nests"`), verified. Postcondition: loop form: no op has a
nest; ops that share a pending sum are in one loop; arguments, results and the carries of control
flow, which are identities, keep the nests that are not empty. `partir-nests` leads back.

```mlir
%0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<256x8xf32>
```
becomes
```mlir
%0 = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
  %1 = partir.slice 0 %x[%i] : tensor<64x8xf32>
  %2 = stablehlo.tanh %1 : tensor<64x8xf32>
  partir.yield %2 : tensor<64x8xf32>
} : tensor<256x8xf32>
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import location_text
from ..partir_dialect.partir import EmbedOp, LoopOp, OnceOp, SliceOp, YieldOp
from ..partir_dialect.partir_attributes import (
    REDUCE_ACTIONS,
    Action,
    AnyAttr,
    NestAttr,
    NestEntry,
    TileAttr,
)
from ..partir_dialect.partir_types import FORM, NEST, mesh_of, tensor, tiled_type
from ..partir_dialect.rules import rule_of
from ..partir_dialect.rules.base import Rule
from .inline import clone_region
from .iterations import Form, Mark, Rests, choose_form, retyped_properties
from .nest_form import drop_empty_nests, partial_axes, placed_blocks, verify_nests

ORDER = "partir.order"
"""On an op in a loop of several ops: the axes of its nest, where its loops have another order."""

Values = dict[SSAValue, SSAValue]
Group = tuple[str | None, list[int]]
"""What goes into one loop: the axis of the sum that is pending in it, if any, and the members."""


@dataclass
class _Member:
    """An op on its way into loops: what is left of its nest, its operands and types so far."""

    op: Operation
    rule: Rule
    entries: list[NestEntry]
    rests: Rests
    sources: list[SSAValue]
    types: list[Attribute]
    order: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, op: Operation) -> _Member:
        nest = op.attributes.get(NEST)
        entries = list(nest.data) if isinstance(nest, NestAttr) else []
        rule = rule_of(op)
        types = [result.type for result in op.results]
        return cls(op, rule, entries, Rests(rule), [], types)

    def entry(self, axis: str) -> NestEntry:
        return next(entry for entry in self.entries if entry.axis == axis)

    def fail(self, message: str) -> PassFailedException:
        place = location_text(self.op.location)
        where = f"{place}: " if place else ""
        return PassFailedException(f"{where}{self.op.name}: {message}")


# --- which ops share a loop ---------------------------------------------------------------------


def _pending_edges(members: Sequence[_Member]) -> dict[str, list[tuple[int, int]]]:
    """By axis: the pairs of members of which the second takes the pending sum of the first."""
    edges: dict[str, list[tuple[int, int]]] = {}
    if not any(entry.pending for member in members for entry in member.entries):
        return edges
    number = {member.op: m for m, member in enumerate(members)}
    for consumer, member in enumerate(members):
        axes = {entry.axis for entry in member.entries if entry.pending is not None}
        for operand in member.op.operands if axes else ():
            source = number.get(operand.owner) if isinstance(operand.owner, Operation) else None
            if source is None:
                continue
            producer = members[source]
            result = producer.op.results.index(operand)
            for axis in axes & partial_axes(producer.entries, producer.rule, result):
                edges.setdefault(axis, []).append((source, consumer))
    return edges


def _components(edges: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """The groups of members that the edges connect, each in order."""
    root: dict[int, int] = {}

    def find(member: int) -> int:
        while root.setdefault(member, member) != member:
            member = root[member]
        return member

    for left, right in edges:
        root[find(right)] = find(left)
    groups: dict[int, list[int]] = {}
    for member in sorted(root):
        groups.setdefault(find(member), []).append(member)
    yield from groups.values()


def _groups(members: Sequence[_Member]) -> list[Group]:
    """Members that share a loop now (those that share another one inside it come later), in the
    order of their last ops; members that share none are alone."""
    found: list[Group] = []
    taken: set[int] = set()
    edges = _pending_edges(members)
    candidates = [(axis, group) for axis in edges for group in _components(edges[axis])]
    for axis, group in sorted(candidates, key=lambda candidate: -len(candidate[1])):
        if not taken.intersection(group):
            found.append((axis, group))
            taken.update(group)
        elif not any(set(group) <= set(other) for _, other in found):
            raise members[group[0]].fail(f"its pending sum over {axis!r} overlaps with another")
    found += [(None, [m]) for m in range(len(members)) if m not in taken]
    return sorted(found, key=lambda item: item[1][-1])


# --- writing loops ------------------------------------------------------------------------------


@dataclass
class _Body:
    """The loop being written: what its values are inside, and how each result leaves it."""

    loop: LoopOp
    values: Values
    actions: dict[SSAValue, Action] = field(default_factory=dict[SSAValue, Action])
    cuts: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def add(self, op: Operation) -> SSAValue:
        self.loop.body.block.add_op(op)
        return op.results[0]


def _take(mark: Mark, source: SSAValue, body: _Body) -> SSAValue:
    """The part of an operand that an iteration takes."""
    index = body.loop.index
    if mark.once is not None:
        return body.add(OnceOp(source, mark.once, index))
    assert mark.dim is not None
    tile = body.add(SliceOp(source, mark.dim, index))
    if mark.embeds is None:
        return tile
    return body.add(EmbedOp(tile, mark.embeds, mark.dim, index, source.type))


def _leaving(members: Sequence[_Member]) -> list[SSAValue]:
    """The results that others than the members use (or nobody does)."""
    inside = {member.op for member in members}
    return [
        result
        for member in members
        for result in member.op.results
        if result.first_use is None or any(use.operation not in inside for use in result.uses)
    ]


def _write(members: Sequence[_Member], values: Values, mesh: Mesh) -> list[Operation]:
    """The loops of `members`, and in the innermost ones the ops; `values` maps the results of ops
    to what they are in this place, and gets those of the members."""
    ops: list[Operation] = []
    for axis, group in _groups(members):
        chosen = [members[m] for m in group]
        if axis is None and chosen[0].entries:
            axis = chosen[0].entries[0].axis
        if axis is None:
            ops.append(_write_op(chosen[0], values))
        else:
            ops.append(_write_loop(axis, chosen, values, mesh))
    return ops


def _write_op(member: _Member, values: Values) -> Operation:
    op = member.op
    operands = [values.get(source, source) for source in member.sources]
    attributes = op.attributes.copy()
    nest = attributes.pop(NEST, None)
    if isinstance(nest, NestAttr) and list(nest.axes) != member.order:
        attributes[ORDER] = ArrayAttr([StringAttr(axis) for axis in nest.axes])
    copy = type(op).create(
        operands=operands,
        result_types=member.types,
        properties=retyped_properties(op, [operand.type for operand in operands], member.types),
        attributes=attributes,
        location=op.location,
        regions=[clone_region(region, {}) for region in op.regions],
    )
    _map_results(op.results, copy.results, values)
    return copy


def _map_results(old: Sequence[SSAValue], new: Sequence[SSAValue], values: Values) -> None:
    for before, after in zip(old, new, strict=True):
        values[before] = after
        after.name_hint = before.name_hint


def _write_loop(axis: str, members: Sequence[_Member], values: Values, mesh: Mesh) -> Operation:
    outer: dict[SSAValue, Attribute] = {
        r: t for m in members for r, t in zip(m.op.results, m.types, strict=True)
    }
    body = _Body(LoopOp(axis, [], [], mesh.size(axis)), dict(values))
    for member in members:
        _check_mates(member, axis, members)
        _enter(member, axis, body)
    body.loop.body.block.add_ops(_write(members, body.values, mesh))
    leaving = _leaving(members)
    yielded: list[SSAValue] = []
    for result in leaving:
        value = body.values[result]
        if result in body.cuts:
            value = body.add(SliceOp(value, body.cuts[result], body.loop.index))
        yielded.append(value)
    body.loop.body.block.add_op(YieldOp(*yielded))
    actions = [body.actions[result] for result in leaving]
    types = [outer[result] for result in leaving]
    loop = LoopOp(axis, actions, types, body.loop.detach_region(0))
    loop.location = members[-1].op.location
    _map_results(leaving, loop.res, values)
    return loop


def _check_mates(member: _Member, axis: str, members: Sequence[_Member]) -> None:
    """Inside the loop the others' results are still partial: only a pending entry can take them."""
    if len(members) > 1 and member.entry(axis).pending is None:
        made = {result for other in members for result in other.op.results}
        if any(source in made for source in member.sources):
            raise member.fail(f"takes a sum over {axis!r} that is still pending in the same loop")


def _enter(member: _Member, axis: str, body: _Body) -> None:
    """Takes the entry of `axis` off the nest: operands are sliced, results retyped."""
    entry, size = member.entry(axis), body.loop.size
    form = _form(member, entry, size)
    member.entries.remove(entry)
    member.order.append(axis)
    for k, mark in enumerate(form.operands):
        if mark is not None:
            source = member.sources[k]
            member.sources[k] = _take(mark, body.values.get(source, source), body)
    for k, result in enumerate(member.op.results):
        action, cut = form.actions[k], form.cuts[k]
        body.actions[result] = action
        if cut is not None:
            body.cuts[result] = cut
        elif isinstance(action, TileAttr):
            member.types[k] = tiled_type(tensor(member.types[k]), action.dim, size)


def _form(member: _Member, entry: NestEntry, size: int) -> Form:
    operands, results = len(member.op.operands), len(member.op.results)
    if entry.factor is None:
        action: Action = REDUCE_ACTIONS[entry.pending]() if entry.pending else AnyAttr()
        return Form((None,) * operands, (None,) * results, (action,) * results)
    form = choose_form(member.op, member.rule, entry.factor, member.rests, size)
    if form is None:
        raise member.fail(f"the tiles of this nest entry are no slices: {entry}")
    member.rests.take(form, entry.factor, size)
    return form


# --- modules ------------------------------------------------------------------------------------


def _check_place(block: Block, members: Sequence[_Member], order: dict[Operation, int]) -> None:
    """What the loop gives must be used after the place where it stands: that of its last op."""
    last = members[-1].op
    inside = {member.op for member in members}
    for member in members:
        for result in member.op.results:
            for use in result.uses:
                user = block.find_ancestor_op_in_block(use.operation)
                if user is not None and user not in inside and order[user] < order[last]:
                    raise member.fail("its pending sum is used before all of it has been made")


def _rewrite_block(block: Block, members: Sequence[_Member], mesh: Mesh) -> None:
    looped = [member for member in members if member.entries]
    order = {op: number for number, op in enumerate(block.ops)}
    for _, group in _groups(looped):
        chosen = [looped[m] for m in group]
        if len(chosen) > 1:
            _check_place(block, chosen, order)
        for member in chosen:
            member.sources = list(member.op.operands)
        values: Values = {}
        block.insert_ops_before(_write(chosen, values, mesh), chosen[-1].op)
        for old, new in values.items():
            old.replace_all_uses_with(new)
        for member in reversed(chosen):
            member.op.detach()
            member.op.erase()


def loops(module: ModuleOp) -> None:
    """Turns a module in nest form into loop form, in place.

    Raises `VerifyException` if it is not in nest form, and `PassFailedException`, with the op's
    location, for a nest that no loop can say: a tile that is not contiguous, overlapping sums.
    """
    verify_nests(module)
    mesh = mesh_of(module)
    if mesh is None:
        raise VerifyException("nest form needs a mesh: the module has no partir.mesh")
    blocks = [(block, [_Member.of(op) for op in ops]) for block, ops in placed_blocks(module)]
    for block, members in blocks:
        _rewrite_block(block, members, mesh)
        for op in block.ops:
            op.attributes.pop(NEST, None)
    drop_empty_nests(module)
    del module.attributes[FORM]


@dataclass(frozen=True)
class LoopsPass(ModulePass):
    """From nest form to loop form: see the module."""

    name = "partir-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops(op)
