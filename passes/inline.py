"""How does a program become one function? Calls are replaced by the bodies they name.

Precondition: every callee is a function of one block in the module. Postcondition: no `func.call`
and no `stablehlo.composite` is left in a public function, not even inside a region; a private
function that nothing names is gone. Inlined ops keep their own locations.

```mlir
func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @"<lambda>"(%x) : (tensor<8xf32>) -> tensor<8xf32>   // before
  %0 = stablehlo.tanh %x : tensor<8xf32>                              // after
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..partir_dialect.errors import PartirError
from ..partir_dialect.names import location_text
from ..partir_dialect.partir_types import elements

MAX_OPS = 4_000_000
_COMPOSITE = "stablehlo.composite"


def clone_op(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """A copy of `op` on the values that `values` maps its operands to; extends `values` by results.

    Location, name hints, properties and attributes are kept.
    """
    copy = type(op).create(
        operands=[values.get(operand, operand) for operand in op.operands],
        result_types=[result.type for result in op.results],
        properties=op.properties.copy(),
        attributes=op.attributes.copy(),
        location=op.location,
        regions=[clone_region(region, values) for region in op.regions],
    )
    for old, new in zip(op.results, copy.results, strict=True):
        values[old] = new
        new.name_hint = old.name_hint
    return copy


def clone_region(region: Region, values: dict[SSAValue, SSAValue]) -> Region:
    """A copy of `region`; `values` is as in `clone_op`."""
    blocks: list[Block] = []
    for block in region.blocks:
        copy = Block(arg_types=[arg.type for arg in block.args])
        for old, new in zip(block.args, copy.args, strict=True):
            values[old] = new
            new.name_hint = old.name_hint
            new.location = old.location
        copy.add_ops([clone_op(op, values) for op in block.ops])
        blocks.append(copy)
    return Region(blocks)


def callee_name(op: Operation) -> str | None:
    """The function that `op` calls, or None if it is no call."""
    if isinstance(op, CallOp):
        return op.callee.string_value()
    if op.name == _COMPOSITE:
        symbol = op.properties.get("decomposition") or op.attributes.get("decomposition")
        return symbol.string_value() if isinstance(symbol, SymbolRefAttr) else None
    return None


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of the module by symbol."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def is_private(func: FuncOp) -> bool:
    """Whether only this module can call the function."""
    return func.sym_visibility is not None and func.sym_visibility.data == "private"


def _fail(message: str, op: Operation) -> PartirError:
    place = location_text(op.location)
    return PartirError(f"{place}: {message}" if place else message)


@dataclass(frozen=True)
class _Calls:
    """The calls of each function, in order, and the functions with callees first."""

    calls: Mapping[str, list[Operation]]
    order: list[str]


def _resolve(table: Mapping[str, FuncOp], op: Operation) -> str:
    name = callee_name(op)
    assert name is not None
    callee = table.get(name)
    if callee is None or not callee.body.blocks:
        raise _fail(f"a call needs a function with a body, got: @{name}", op)
    if len(callee.body.blocks) > 1:
        raise _fail(f"a function of several blocks cannot be inlined, got: @{name}", op)
    _check_signature(callee, op)
    return name


def _check_signature(callee: FuncOp, op: Operation) -> None:
    types = callee.function_type
    if (
        tuple(op.operand_types) != types.inputs.data
        or tuple(result.type for result in op.results) != types.outputs.data
    ):
        raise _fail(f"the call does not fit the type {types} of @{callee.sym_name.data}", op)


def _order(table: Mapping[str, FuncOp]) -> _Calls:
    """Callees before callers; raises `PartirError` at a call that leads back to its function."""
    calls = {name: calls_in(func) for name, func in table.items()}
    order: list[str] = []
    done: set[str] = set()
    for root in table:
        if root in done:
            continue
        active = {root}
        stack: list[tuple[str, Iterator[Operation]]] = [(root, iter(calls[root]))]
        while stack:
            name, rest = stack[-1]
            op = next(rest, None)
            if op is None:
                stack.pop()
                active.discard(name)
                done.add(name)
                order.append(name)
                continue
            callee = _resolve(table, op)
            if callee in active:
                raise _fail(f"recursion cannot be inlined, got: a call of @{callee}", op)
            if callee not in done:
                active.add(callee)
                stack.append((callee, iter(calls[callee])))
    return _Calls(calls, order)


def _check_size(table: Mapping[str, FuncOp], graph: _Calls) -> None:
    """Raises `PartirError` before a few nested calls blow up to more ops than memory holds."""
    sizes: dict[str, int] = {}
    for name in graph.order:
        calls = graph.calls[name]
        sizes[name] = sum(1 for _ in table[name].walk()) + sum(
            sizes[callee_name(op) or ""] for op in calls
        )
        if sizes[name] > MAX_OPS:
            raise _fail(f"inlining makes more than {MAX_OPS} ops in @{name}", table[name])


def _inline_call(call: Operation, callee: FuncOp, *, take: bool) -> list[Operation]:
    """Puts the body of `callee` in the place of `call`, or with `take` the body itself and no copy;
    the calls in it."""
    block = call.parent
    assert block is not None
    body = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands, strict=True))
    if take:
        for argument, value in values.items():
            argument.replace_all_uses_with(value)
    last = body.last_op
    assert isinstance(last, ReturnOp)
    calls: list[Operation] = []
    for op in [op for op in body.ops if op is not last]:
        if take:
            op.detach()
        placed = op if take else clone_op(op, values)
        block.insert_op_before(placed, call)
        calls += calls_in(placed)
    for result, value in zip(call.results, last.operands, strict=True):
        new = values.get(value, value)
        if new.name_hint is None:
            new.name_hint = result.name_hint
        result.replace_all_uses_with(new)
    call.detach()
    call.erase()
    if take:
        callee.detach()
        callee.erase()
    return calls


def calls_in(op: Operation) -> list[Operation]:
    """The calls among `op` and the ops inside it."""
    return [inner for inner in op.walk() if callee_name(inner) is not None]


def inline_calls(module: ModuleOp) -> None:
    """Replaces all calls of the module by bodies, and drops the functions that nothing names.

    Raises `PartirError`, with the location of the call, for recursion, an unknown or external
    function, or a call that does not fit the function's type.
    """
    drop_unused_functions(module)
    table = functions(module)
    graph = _order(table)
    _check_size(table, graph)
    uses = Counter(references(module))
    called = Counter(callee_name(op) for calls in graph.calls.values() for op in calls)
    stays = [name for name, f in table.items() if not is_private(f) or uses[name] > called[name]]
    for root in stays:
        work = calls_in(table[root])
        while work:
            op = work.pop()
            name = callee_name(op)
            assert name is not None
            take = uses[name] == 1 and is_private(table[name])
            inner = _inline_call(op, table[name], take=take)
            uses[name] -= 1
            if not take:
                uses.update(callee_name(call) or "" for call in inner)
            work += inner
    drop_unused_functions(module)


def references(op: Operation) -> Iterator[str]:
    """Every name that ops inside `op` refer to, as often as they do."""
    for inner in op.walk():
        for attributes in (inner.properties, inner.attributes):
            for attribute in attributes.values():
                yield from _symbols(attribute)


def _symbols(attribute: Attribute) -> Iterator[str]:
    if isinstance(attribute, SymbolRefAttr):
        yield attribute.string_value()
    for element in elements(attribute):
        yield from _symbols(element)
    if isinstance(attribute, DictionaryAttr):
        for element in attribute.data.values():
            yield from _symbols(element)


def drop_unused_functions(module: ModuleOp) -> None:
    """Removes the private functions that nothing reachable from a public one refers to."""
    table = functions(module)
    keep: set[str] = set()
    others = [op for op in module.ops if not isinstance(op, FuncOp)]
    work: list[Operation] = [*others, *(f for f in table.values() if not is_private(f))]
    while work:
        for name in references(work.pop()):
            if name in table and name not in keep:
                keep.add(name)
                work.append(table[name])
    for name, func in table.items():
        if is_private(func) and name not in keep:
            func.detach()
            func.erase()
