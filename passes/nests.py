"""Which nests do the loops of a module stand for? Each op of a loop gets its nest back.

Precondition: loop form, written by `partir-loops` or by hand. Postcondition: nest form
(`partir.form = "nests"`), verified: no loop is left, every op has its global type and a nest. Ops
that share a loop get the entry of a pending sum where they take partial results in it.

```mlir
%0 = partir.loop "model" [#partir.sum] (%j : !partir.range<2>) {
  %1 = partir.slice 1 %x[%j] : tensor<64x4xf32>
  %2 = partir.slice 0 %w[%j] : tensor<4x16xf32>
  %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : …
  partir.yield %3 : tensor<64x16xf32>
} : tensor<64x16xf32>
```
becomes
```mlir
%0 = stablehlo.dot_general %x, %w, … {partir.nest = #partir.nest<[model: k]>} : …
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ..partir_dialect.names import location_text
from ..partir_dialect.partir import EmbedOp, IndexedOp, LoopOp, OnceOp, SliceOp, YieldOp
from ..partir_dialect.partir_attributes import (
    Action,
    AnyAttr,
    NestAttr,
    NestEntry,
    ReduceAction,
    TileAttr,
)
from ..partir_dialect.partir_types import FORM, NEST, elements, tensor, with_shape
from ..partir_dialect.rules import rule_of
from ..partir_dialect.rules.base import Rule
from .generated import PLACED_REGIONS
from .iterations import Form, Mark, Rests, forms_of, retyped_properties
from .loops import ORDER
from .nest_form import add_empty_nests, verify_nests

Marks = dict[str, Mark]
"""By axis: what an iteration has of a value."""

Exit = tuple[Action | None, int | None]
"""How a result leaves a loop: the action at its yield, and the dimension that is cut from it."""


@dataclass(frozen=True)
class _Local:
    """A value in a loop: the global value that it is a part of, and which part."""

    whole: SSAValue
    marks: Marks = field(default_factory=dict[str, Mark])


def _fail(op: Operation, message: str) -> PassFailedException:
    place = location_text(op.location)
    return PassFailedException(
        f"{place}: {op.name}: {message}" if place else f"{op.name}: {message}"
    )


def _exits(value: SSAValue, loop: LoopOp) -> Iterator[Exit]:
    """How `value`, made in `loop` or in a loop inside it, leaves `loop`."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, YieldOp):
            holder = user.parent_op()
            assert isinstance(holder, LoopOp)
            if holder is loop:
                yield holder.action_list[use.index], None
            else:
                yield from _exits(holder.res[use.index], loop)
        elif isinstance(user, SliceOp) and use.index == 0:
            if user.loop is loop:
                yield None, user.dim
            else:
                yield from _exits(user.result, loop)


def _outer_type(value: SSAValue, top: LoopOp) -> Attribute | None:
    """The type of `value` once all loops have ended; None if it never leaves them."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, YieldOp):
            holder = user.parent_op()
            assert isinstance(holder, LoopOp)
            result = holder.res[use.index]
            outer = result.type if holder is top else _outer_type(result, top)
        elif isinstance(user, SliceOp) and use.index == 0:
            outer = _outer_type(user.result, top)
        else:
            outer = None
        if outer is not None:
            return outer
    return None


class _Flattener:
    """Takes one outermost loop apart; its ops are made anew, on whole values, before it."""

    def __init__(self, top: LoopOp) -> None:
        self._top = top
        self._locals: dict[SSAValue, _Local] = {}
        self._stack: list[LoopOp] = []

    def flatten(self) -> None:
        self._loop(self._top)
        for result in self._top.res:
            result.replace_all_uses_with(self._local(result).whole)
        self._top.detach()
        self._top.erase()

    def _local(self, value: SSAValue) -> _Local:
        return self._locals.get(value) or _Local(value)

    def _loop(self, loop: LoopOp) -> None:
        self._stack.append(loop)
        for op in list(loop.body.block.ops):
            handler = _HANDLERS.get(type(op), _Flattener._op)
            handler(self, op)
        for result, value in zip(loop.res, loop.yielded, strict=True):
            local = self._local(value)
            marks = {axis: mark for axis, mark in local.marks.items() if axis != loop.axis_name}
            self._locals[result] = _Local(local.whole, marks)
            if local.whole.name_hint is None:
                local.whole.name_hint = result.name_hint
        self._stack.pop()

    def _skip(self, op: Operation) -> None:
        pass

    def _nested(self, op: Operation) -> None:
        assert isinstance(op, LoopOp)
        self._loop(op)

    def _indexed(self, op: Operation) -> None:
        """slice, embed, once: what an iteration has of a value."""
        assert isinstance(op, IndexedOp)
        axis, local = op.loop.axis_name, self._local(op.source)
        before = local.marks.get(axis)
        if isinstance(op, EmbedOp):
            if before is None or before != Mark(dim=op.dim):
                raise _fail(op, f"embeds what is no slice along dimension {op.dim} of its loop")
            mark = Mark(dim=op.dim, embeds=op.reducer.data)
        elif before is not None:
            raise _fail(op, f"takes a part of what is a part along {axis!r} already")
        elif isinstance(op, OnceOp):
            mark = Mark(once=op.reducer.data)
        else:
            assert isinstance(op, SliceOp)
            mark = Mark(dim=op.dim)
        self._locals[op.result] = _Local(local.whole, local.marks | {axis: mark})

    def _op(self, op: Operation) -> None:
        if op.name in PLACED_REGIONS:
            raise _fail(op, "control flow in a loop has no nest")
        self._check_captures(op)
        operands = [self._local(operand) for operand in op.operands]
        types = [self._result_type(op, k, operands) for k in range(len(op.results))]
        whole = self._make(op, [local.whole for local in operands], types)
        rule = rule_of(whole)
        rests = Rests(rule)
        entries: list[NestEntry] = []
        results: list[Marks] = [{} for _ in op.results]
        for loop in self._stack:
            entry, marks = _entry(op, whole, rule, rests, loop, operands)
            entries.append(entry)
            for own, mark in zip(results, marks, strict=True):
                if mark is not None:
                    own[loop.axis_name] = mark
        whole.attributes[NEST] = NestAttr(_ordered(whole, entries))
        for old, new, marks in zip(op.results, whole.results, results, strict=True):
            self._locals[old] = _Local(new, marks)
            new.name_hint = old.name_hint

    def _check_captures(self, op: Operation) -> None:
        for region in op.regions:
            for inner in region.walk():
                for operand in inner.operands:
                    if operand in self._locals:
                        raise _fail(op, "its body takes a value of the loop around it")

    def _make(self, op: Operation, operands: list[SSAValue], types: list[Attribute]) -> Operation:
        whole = type(op).create(
            operands=operands,
            result_types=types,
            properties=retyped_properties(op, [operand.type for operand in operands], types),
            attributes=op.attributes.copy(),
            location=op.location,
            regions=[op.detach_region(region) for region in list(op.regions)],
        )
        block = self._top.parent
        assert block is not None
        block.insert_op_before(whole, self._top)
        try:
            whole.verify()
        except VerifyException as error:
            raise _fail(whole, f"outside its loops it would be no valid op: {error}") from error
        return whole

    def _result_type(self, op: Operation, result: int, operands: list[_Local]) -> Attribute:
        """The global type: that of the loops' results where it leaves them, else from the rule."""
        value = op.results[result]
        outer = _outer_type(value, self._top)
        if outer is not None:
            return outer
        rule = rule_of(op)
        shape = list(tensor(value.type).get_shape())
        for loop in self._stack:
            factor = _sliced_factor(rule, operands, loop.axis_name)
            for dim, made_of in enumerate(rule.results[result]):
                if factor is not None and factor in made_of:
                    shape[dim] = _global_size(rule, factor, made_of, operands, shape[dim], loop)
        return with_shape(tensor(value.type), shape)


def _sliced_factor(rule: Rule, operands: Sequence[_Local], axis: str) -> int | None:
    """The factor that some operand is sliced along, in the rule of the local op."""
    for local, dims in zip(operands, rule.operands, strict=True):
        mark = local.marks.get(axis)
        if mark is not None and mark.dim is not None and mark.embeds is None and dims[mark.dim]:
            return dims[mark.dim][0]
    return None


def _global_size(
    rule: Rule,
    factor: int,
    made_of: tuple[int, ...],
    operands: Sequence[_Local],
    size: int,
    loop: LoopOp,
) -> int:
    """The global size of a result's dimension: that of the operand's dimension of the same factors,
    or as many tiles as there are iterations."""
    for local, dims in zip(operands, rule.operands, strict=True):
        for dim, own in enumerate(dims):
            if own == made_of and factor in own:
                return tensor(local.whole.type).get_shape()[dim]
    return size * loop.size


def _ordered(op: Operation, entries: list[NestEntry]) -> list[NestEntry]:
    """The entries in the order that the op says, if it says one."""
    order = op.attributes.pop(ORDER, None)
    if order is None:
        return entries
    names = [axis.data if isinstance(axis, StringAttr) else "" for axis in elements(order)]
    if sorted(names) != sorted(entry.axis for entry in entries):
        raise _fail(op, f"{ORDER} names the axes of the loops around it, got: {names}")
    return sorted(entries, key=lambda entry: names.index(entry.axis))


def _entry(
    op: Operation,
    whole: Operation,
    rule: Rule,
    rests: Rests,
    loop: LoopOp,
    operands: Sequence[_Local],
) -> tuple[NestEntry, tuple[Mark | None, ...]]:
    """The entry that the op's operands and results show for one loop, and what an iteration then
    has of each result."""
    axis = loop.axis_name
    marks = tuple(local.marks.get(axis) for local in operands)
    exits = [set(_exits(result, loop)) for result in op.results]
    partial = {mark.partial for mark in marks if mark is not None and mark.partial is not None}
    if partial:
        return _pending_entry(op, axis, marks, exits)
    for factor in range(len(rule.factors)):
        for form in forms_of(whole, rule, factor):
            fits = form.operands == marks and _leaves(form, exits)
            if fits and rests.allow(form, factor, loop.size):
                rests.take(form, factor, loop.size)
                return NestEntry(axis, factor), tuple(map(_result_mark, form.actions, form.cuts))
    anything = Form(marks, (None,) * len(exits), (AnyAttr(),) * len(exits))
    if not any(marks) and _leaves(anything, exits):
        return NestEntry(axis), (None,) * len(exits)
    raise _fail(op, f"what the loop over {axis!r} does to it is along no factor of its rule")


def _leaves(form: Form, exits: Sequence[set[Exit]]) -> bool:
    """Whether each result leaves the loop as the form says, if it leaves it."""
    for action, cut, ways in zip(form.actions, form.cuts, exits, strict=True):
        wanted: Exit = (action, None) if cut is None else (None, cut)
        if not ways <= {wanted}:
            return False
    return True


def _result_mark(action: Action, cut: int | None) -> Mark | None:
    if cut is not None or isinstance(action, AnyAttr):
        return None
    if isinstance(action, TileAttr):
        return Mark(dim=action.dim)
    return Mark(partial=action.reducer)


def _pending_entry(
    op: Operation, axis: str, marks: Sequence[Mark | None], exits: Sequence[set[Exit]]
) -> tuple[NestEntry, tuple[Mark | None, ...]]:
    reducers = {mark.partial for mark in marks if mark is not None}
    reducer = next(iter(reducers))
    if len(reducers) != 1 or reducer is None:
        raise _fail(op, f"takes pending sums over {axis!r} together with slices along it")
    for ways in exits:
        for action, cut in ways:
            if cut is not None or not isinstance(action, ReduceAction) or action.reducer != reducer:
                raise _fail(op, f"a sum pending over {axis!r} leaves the loop by {reducer}")
    return NestEntry(axis, pending=reducer), tuple(Mark(partial=reducer) for _ in exits)


_HANDLERS: dict[type[Operation], Callable[[_Flattener, Operation], None]] = {
    LoopOp: _Flattener._nested,  # pyright: ignore[reportPrivateUsage]
    SliceOp: _Flattener._indexed,  # pyright: ignore[reportPrivateUsage]
    EmbedOp: _Flattener._indexed,  # pyright: ignore[reportPrivateUsage]
    OnceOp: _Flattener._indexed,  # pyright: ignore[reportPrivateUsage]
    YieldOp: _Flattener._skip,  # pyright: ignore[reportPrivateUsage]
}


def _flatten_block(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, LoopOp):
            _Flattener(op).flatten()
            continue
        for region in op.regions:
            for inner in region.blocks:
                _flatten_block(inner)


def nests(module: ModuleOp) -> None:
    """Turns a module in loop form into nest form, in place; one in nest form stays as it is.

    Raises `PassFailedException`, with the op's location, for a loop that no nest of its ops can
    say, and `VerifyException` if the result is not sound.
    """
    if FORM not in module.attributes:
        _flatten_block(module.body.block)
        add_empty_nests(module)
    verify_nests(module)


@dataclass(frozen=True)
class NestsPass(ModulePass):
    """From loop form to nest form: see the module."""

    name = "partir-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        nests(op)
