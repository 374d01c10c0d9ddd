"""How ops that run regions or call functions are executed, for several devices in lock step.

Devices that take different branches, or leave a loop at different times, run one group after the
other; a collective inside then sees only the devices that reached it, and reports a deadlock when a
group is split (see `collectives`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from .attributes import find, integer, integers, operand_shape, text
from .compiler import Code, Column, Compiler, Context, Frame, Lanes, Run, Tuple, execute
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


@controls("stablehlo.while")
def _while(op: Operation, compiler: Compiler) -> Run:
    condition, body = compiler.region(op.regions[0]), compiler.region(op.regions[1])
    operands = [compiler.slot(value) for value in op.operands]
    results = [compiler.slot(value) for value in op.results]
    devices = compiler.program.devices

    def run(frame: Frame, lanes: Lanes) -> None:
        carried: list[Column] = [list(frame[slot]) for slot in operands]
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
        for slot, column in zip(results, carried, strict=True):
            frame[slot] = _only(column, lanes, devices)

    return run


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
