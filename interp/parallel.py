"""What `interpreter.run_parallel` of StableHLO's own tests computes: a function on many processes.

It is a simulated mesh inside a program: `programs = [[@f, @f], [@f, @f]]` are replicas by
partitions, operands and results those of all processes one after the other. All processes must run
one function (it may ask for its number).
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from .attributes import need, word
from .compiler import Context, Program
from .faults import InterpreterError
from .grid import Grid
from .registry import Array, Kernel, implements


@implements("interpreter.run_parallel")
def _run_parallel(op: Operation, context: Context) -> Kernel:
    rows: list[list[str]] = [[word(name) for name in row.data] for row in need(op, "programs").data]
    names = {name for row in rows for name in row}
    if len(names) != 1:
        raise InterpreterError(f"all processes must run one function, got: {sorted(names)}")
    (name,) = names
    grid = Grid(len(rows), len(rows[0]))
    outer = context.program
    program = Program(outer.module, devices=grid.devices, grid=grid, reference=outer.reference)

    def kernel(*operands: Array) -> list[Any]:
        count = len(operands) // grid.devices
        columns = [list(operands[k::count]) for k in range(count)]
        results = program.call(name, columns, range(grid.devices))
        return [column[device] for device in range(grid.devices) for column in results]

    return kernel
