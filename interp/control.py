"""How ops that run regions or call functions are executed, for several devices in lock step.

Devices that take different branches, or leave a loop at different times, run one group after the
other; a collective inside then sees only the devices that reached it, and reports a deadlock when a
group is split (see `collectives`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import BlockArgument, Operation, SSAValue

from .attributes import find, integer, integers, operand_shape, text
from .compiler import Code, Column, Compiler, Context, Frame, Lanes, Program, Run, Tuple, execute
from .registry import Kernel, controls, implements


@controls("func.call", "stablehlo.composite")
def _call(op: Operation, compiler: Compiler) -> Run:
    name = text(op, "callee" if op.name == "func.call" else "decomposition")
    operands = [compiler.slot(value) for value in op.operands]
    results = [compiler.slot(value) for value in op.results]
    program = compiler.program

    def run(frame: Frame, lanes: Lanes) -> None:
        columns = program.call(name, [frame[slot] for slot in operands], lanes)
        for slot, column in zip(results, columns, strict=True):
            frame[slot] = column

    return run


@controls("sdy.named_computation", "stablehlo.async_start")
def _inline(op: Operation, compiler: Compiler) -> Run:
    """Runs a region once; an `async_start` gives its values together, as one future."""
    code = compiler.region(op.regions[0])
    operands = [compiler.slot(value) for value in op.operands]
    results = [compiler.slot(value) for value in op.results]
    together = op.name == "stablehlo.async_start"

    def run(frame: Frame, lanes: Lanes) -> None:
        _bind(frame, code.arguments, [frame[slot] for slot in operands])
        columns = _branch(code, frame, lanes)
        if together:
            columns = [[Tuple(values) for values in zip(*columns, strict=True)]]
        for slot, column in zip(results, columns, strict=True):
            frame[slot] = column

    return run


@implements("stablehlo.async_done")
def _async_done(op: Operation, context: Context) -> Kernel:
    def kernel(future: Tuple) -> list[Any]:
        return list(future)

    return kernel


def _updated_in_place(op: Operation, program: Program) -> dict[int, Operation]:
    """The carries of a loop that nothing sees but one `dynamic_update_slice` in the body, which
    makes the next value of the carry: the update may write into the array that it is given."""
    body, condition = op.regions[1].block, op.regions[0].block
    found: dict[int, Operation] = {}
    for k, argument in enumerate(body.args):
        if list(condition.args[k].uses):
            continue
        update, after = _only_update(argument, program)
        if update is not None and _only_use(after) == (body.last_op, k):
            found[k] = update
    return found


def _only_use(value: SSAValue | None) -> tuple[Operation | None, int]:
    """The op that alone uses a value, and as which operand; None if there is no such op."""
    uses = [] if value is None else list(value.uses)
    return (uses[0].operation, uses[0].index) if len(uses) == 1 else (None, 0)


def _only_update(
    argument: BlockArgument, program: Program
) -> tuple[Operation | None, SSAValue | None]:
    """The update of which the argument of a block is the target and that alone uses it, perhaps in
    a function that is called once, and the value in this block that it makes; or None twice."""
    op, index = _only_use(argument)
    if op is None or op.parent_block() is not argument.owner:
        return None, None
    if op.name == "stablehlo.dynamic_update_slice" and index == 0:
        return op, op.results[0]
    if op.name != "func.call" or program.calls[text(op, "callee")] != 1:
        return None, None
    block = program.symbol(text(op, "callee")).body.block
    update, after = _only_update(block.args[index], program)
    end, place = _only_use(after)
    if update is None or end is None or end is not block.last_op:
        return None, None
    return update, op.results[place]


@controls("stablehlo.while")
def _while(op: Operation, compiler: Compiler) -> Run:
    private: dict[int, Operation] = {}
    if compiler.program.observe is None:  # an observer may keep what it sees
        private = _updated_in_place(op, compiler.program)
        compiler.program.in_place.update(private.values())
    condition, body = compiler.region(op.regions[0]), compiler.region(op.regions[1])
    operands = [compiler.slot(value) for value in op.operands]
    results = [compiler.slot(value) for value in op.results]
    devices = compiler.program.devices

    def run(frame: Frame, lanes: Lanes) -> None:
        carried: list[Column] = [list(frame[slot]) for slot in operands]
        for k in private:
            carried[k] = [None if a is None else a.copy() for a in carried[k]]
        active = list(lanes)
        while True:
            _bind(frame, condition.arguments, carried)
            execute(condition, frame, active)
            verdict = frame[condition.returns[0]]
            active = [lane for lane in active if verdict[lane]]
            if not active:
                break
            _bind(frame, body.arguments, carried)
            execute(body, frame, active)
            values = [frame[slot] for slot in body.returns]
            for column, after in zip(carried, values, strict=True):
                for lane in active:
                    column[lane] = after[lane]
        for k, (slot, column) in enumerate(zip(results, carried, strict=True)):
            column = _only(column, lanes, devices)
            frame[slot] = shared_again(column) if k in private and devices > 1 else column

    return run


def shared_again(column: Column) -> Column:
    """One object for equal arrays, so that what follows from them is computed once."""
    seen: dict[Any, Any] = {}
    result: Column = []
    for a in column:
        key = None if a is None else (a.shape, a.dtype, np.ascontiguousarray(a).tobytes())
        result.append(seen.setdefault(key, a))
    return result


def _bind(frame: Frame, slots: list[int], columns: list[Column]) -> None:
    for slot, column in zip(slots, columns, strict=True):
        frame[slot] = list(column)


def _only(column: Column, lanes: Lanes, devices: int) -> Column:
    result: Column = [None] * devices
    for lane in lanes:
        result[lane] = column[lane]
    return result


@controls("stablehlo.case", "stablehlo.if")
def _case(op: Operation, compiler: Compiler) -> Run:
    branches = [compiler.region(region) for region in op.regions]
    selector = compiler.slot(op.operands[0])
    results = [compiler.slot(value) for value in op.results]
    devices = compiler.program.devices
    choose = _first_if_true if op.name == "stablehlo.if" else _clamped

    def run(frame: Frame, lanes: Lanes) -> None:
        columns: list[Column] = [[None] * devices for _ in results]
        groups: dict[int, list[int]] = {}
        for lane in lanes:
            groups.setdefault(choose(frame[selector][lane], len(branches)), []).append(lane)
        for index, members in sorted(groups.items()):
            for column, value in zip(
                columns, _branch(branches[index], frame, members), strict=True
            ):
                for lane in members:
                    column[lane] = value[lane]
        for slot, column in zip(results, columns, strict=True):
            frame[slot] = column

    return run


@controls("chlo.scan")
def _scan(op: Operation, compiler: Compiler) -> Run:
    code = compiler.region(op.regions[0])
    dimension, backward = integer(op, "dimension"), find(op, "is_reverse") is not None
    backward = backward and bool(integer(op, "is_reverse"))
    carries = len(op.operands) - _inputs_of_scan(op)
    inputs = [compiler.slot(value) for value in op.operands[: len(op.operands) - carries]]
    inits = [compiler.slot(value) for value in op.operands[len(op.operands) - carries :]]
    results = [compiler.slot(value) for value in op.results]
    outputs = len(results) - carries
    count = operand_shape(op, 0)[dimension]

    def run(frame: Frame, lanes: Lanes) -> None:
        state: list[Column] = [list(frame[slot]) for slot in inits]
        rounds: list[list[Column]] = []
        for k in reversed(range(count)) if backward else range(count):
            slices = [[_at(a, dimension, k) for a in frame[slot]] for slot in inputs]
            _bind(frame, code.arguments, [*slices, *state])
            execute(code, frame, lanes)
            values: list[Column] = [frame[slot] for slot in code.returns]
            rounds.append(values[:outputs])
            state = values[outputs:]
        if backward:
            rounds.reverse()
        for k, slot in enumerate(results[:outputs]):
            column: Column = [None] * compiler.program.devices
            for lane in lanes:
                column[lane] = np.stack([r[k][lane] for r in rounds], axis=dimension)
            frame[slot] = column
        for slot, column in zip(results[outputs:], state, strict=True):
            frame[slot] = column

    return run


def _inputs_of_scan(op: Operation) -> int:
    """How many operands are scanned over; the others begin the carries."""
    return integers(op, "operandSegmentSizes")[0]


def _at(a: Any, dimension: int, index: int) -> Any:
    return None if a is None else np.take(a, index, axis=dimension)


def _branch(code: Code, frame: Frame, lanes: Lanes) -> list[Column]:
    execute(code, frame, lanes)
    return [frame[slot] for slot in code.returns]


def _first_if_true(predicate: Any, count: int) -> int:
    return 0 if bool(predicate) else 1


def _clamped(index: Any, count: int) -> int:
    """Any index out of range takes the last branch."""
    value = int(np.asarray(index))
    return value if 0 <= value < count else count - 1
