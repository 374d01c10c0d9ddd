"""How a module is made ready to run: blocks of steps over numbered slots, attributes read once.

A value of the program lives in a *column*: a list with one entry a lane (device). A global program
is one lane. Lanes whose operands are the same objects share one evaluation, so what is equal on all
devices is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import location_text
from .attributes import element_of, text
from .bodies import Body
from .faults import InterpreterError
from .numbers import is_float
from .quantised import is_quantised, on_numbers, quantised
from .registry import COMMUNICATION, CONTROL, KERNELS, Kernel

if TYPE_CHECKING:
    from .grid import Grid

Column = list[Any]
Frame = list[Any]
Lanes = Sequence[int]
Observer = Callable[[int, SSAValue, Any], None]
Run = Callable[[Frame, Lanes], None]


def declared(type_: Attribute) -> np.dtype[Any]:
    """The dtype of a tensor type or of an element type; of a quantised one what is stored."""
    found = quantised(type_)
    return numpy_dtype(element_of(type_)) if found is None else found.storage


class Context:
    """What a builder may ask: the dtype of a type in this mode, region bodies, functions."""

    def __init__(self, program: Program, *, numbers: bool = True) -> None:
        self.program = program
        self.reference = program.reference
        self.numbers = numbers  # quantised values are seen as what they stand for
        self.bodies: list[Body] = []

    def declared(self, type_: Attribute) -> np.dtype[Any]:
        """The dtype that the program declares."""
        return declared(type_)

    def dtype(self, type_: Attribute) -> np.dtype[Any]:
        """The dtype that holds such a value: in reference mode doubles for every float."""
        found = quantised(type_) if self.numbers else None
        return self.program.dtype(type_) if found is None else found.expressed

    def body(self, region: Region) -> Body:
        """The region as a function of arrays, applied elementwise."""
        body = Body(region, self.program)
        self.bodies.append(body)
        return body


@dataclass(slots=True)
class Step:
    """One op of a block, ready to run, and the slots whose last use it is."""

    op: Operation
    run: Run
    release: tuple[int, ...] = ()


@dataclass(slots=True)
class Code:
    """A block ready to run: the slots of its arguments, its steps, what its terminator gives."""

    arguments: list[int]
    steps: list[Step] = field(default_factory=list[Step])
    returns: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Function:
    """A function ready to run; `size` is the number of slots that a call needs."""

    code: Code
    size: int


class Program:
    """A module made ready for `devices` lanes; functions are compiled when first called."""

    def __init__(
        self,
        module: ModuleOp,
        *,
        devices: int = 1,
        mesh: Mesh | None = None,
        grid: Grid | None = None,
        reference: bool = False,
        observe: Observer | None = None,
    ) -> None:
        self.module = module
        self.devices = devices
        self.mesh = mesh
        self.grid = grid
        self.reference = reference
        self.observe = observe
        self.symbols = {
            op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)
        }
        self.in_place: set[Operation] = set()  # ops that may write into their first operand
        self._functions: dict[str, Function] = {}

    def stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype in which values declared as `dtype` are kept."""
        if self.reference and is_float(dtype):
            return np.dtype(np.float64)
        if self.reference and dtype.kind == "c":
            return np.dtype(np.complex128)
        return dtype

    def dtype(self, type_: Attribute) -> np.dtype[Any]:
        """The dtype that holds a value of this type."""
        return self.stored(declared(type_))

    @cached_property
    def calls(self) -> Counter[str]:
        """How many ops call each function."""
        return Counter(
            text(op, name) for op in self.module.walk() for name in (_CALLEES.get(op.name),) if name
        )

    def symbol(self, name: str) -> FuncOp:
        """The function `name`; raises `InterpreterError` if there is none."""
        if name not in self.symbols:
            raise InterpreterError(
                f"no such function: {name!r}", name=name, candidates=list(self.symbols)
            )
        return self.symbols[name]

    def function(self, name: str) -> Function:
        """The function `name`, ready to run."""
        if name not in self._functions:
            compiler = Compiler(self)
            code = compiler.region(self.symbol(name).body)
            self._functions[name] = Function(code, compiler.size)
        return self._functions[name]

    def call(self, name: str, arguments: Sequence[Column], lanes: Lanes) -> list[Column]:
        """Runs a function for some lanes; one column for each result."""
        function = self.function(name)
        frame: Frame = [None] * function.size
        for slot, column in zip(function.code.arguments, arguments, strict=True):
            frame[slot] = column
        execute(function.code, frame, lanes)
        return [frame[slot] for slot in function.code.returns]


def execute(code: Code, frame: Frame, lanes: Lanes) -> None:
    """Runs the steps of a block for some lanes."""
    for step in code.steps:
        try:
            step.run(frame, lanes)
        except Exception as error:
            _note(error, step.op)
            raise
        for slot in step.release:
            frame[slot] = None


def name_of(op: Operation) -> str:
    """The name of an op as it is written, also of one that no dialect knows."""
    return op.op_name.data if isinstance(op, UnregisteredOp) and op.op_name else op.name


def _note(error: Exception, op: Operation) -> None:
    """Says once, where the error comes by first, at which op it happened."""
    if getattr(error, "__notes__", None):
        return
    place = location_text(op.location)
    where = f"{name_of(op)}{f' at {place}' if place else ''}"
    error.add_note(f"while interpreting {where}")
    if isinstance(error, InterpreterError):
        error.message = f"{error.message}, in {where}"


class Compiler:
    """Makes the blocks of one function ready; nested regions share the function's slots."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slots: dict[SSAValue, int] = {}

    @property
    def size(self) -> int:
        return len(self.slots)

    def slot(self, value: SSAValue) -> int:
        """The slot of a value, made when first seen."""
        return self.slots.setdefault(value, len(self.slots))

    def block(self, block: Block) -> Code:
        """A block ready to run."""
        code = Code([self.slot(argument) for argument in block.args])
        ops = list(block.ops)
        last = self._last_uses(block, ops)
        for index, op in enumerate(ops):
            if index == len(ops) - 1 and _is_terminator(op):
                code.returns = [self.slot(value) for value in op.operands]
                break
            step = self.step(op)
            step.release = tuple(self.slot(value) for value in last.get(index, ()))
            code.steps.append(step)
        return code

    def _last_uses(self, block: Block, ops: list[Operation]) -> dict[int, list[SSAValue]]:
        """For each op of a block the values of this block that nobody needs after it."""
        own = {value for op in ops for value in op.results}
        last: dict[SSAValue, int] = {value: i for i, op in enumerate(ops) for value in op.results}
        for index, op in enumerate(ops):
            for inner in op.walk() if op.regions else (op,):
                for value in inner.operands:
                    if value in own:
                        last[value] = index
        grouped: dict[int, list[SSAValue]] = {}
        for value, index in last.items():
            grouped.setdefault(index, []).append(value)
        return grouped

    def region(self, region: Region) -> Code:
        """The only block of a region ready to run."""
        if len(region.blocks) != 1:
            raise InterpreterError(f"a region of one block is needed, got: {len(region.blocks)}")
        return self.block(region.block)

    def step(self, op: Operation) -> Step:
        """One op ready to run; raises `InterpreterError` if it has no meaning here."""
        try:
            run = self._run(op)
        except Exception as error:
            _note(error, op)
            raise
        return Step(op, self._observed(run, op) if self.program.observe else run)

    def _run(self, op: Operation) -> Run:
        name = name_of(op)
        operands = [self.slot(value) for value in op.operands]
        results = [self.slot(value) for value in op.results]
        if name in CONTROL:
            return CONTROL[name](op, self)
        if name in COMMUNICATION:
            return self._communication(COMMUNICATION[name](op, self), operands, results)
        if name in KERNELS:
            context = Context(self.program, numbers=name not in _ON_BITS)
            kernel = KERNELS[name](op, context)
            if context.numbers and is_quantised(op):
                kernel = on_numbers(op, kernel)
            return self._pure(kernel, context, operands, results)
        known = (*KERNELS, *CONTROL, *COMMUNICATION)
        raise InterpreterError(
            f"no interpretation for the op: {name!r}", name=name, candidates=known
        )

    def _observed(self, run: Run, op: Operation) -> Run:
        observe = self.program.observe
        results = [self.slot(value) for value in op.results]
        assert observe is not None

        def observed(frame: Frame, lanes: Lanes) -> None:
            run(frame, lanes)
            for value, slot in zip(op.results, results, strict=True):
                for lane in lanes:
                    observe(lane, value, frame[slot][lane])

        return observed

    def _communication(
        self, exchange: Callable[..., list[Column]], operands: list[int], results: list[int]
    ) -> Run:
        def run(frame: Frame, lanes: Lanes) -> None:
            columns = exchange(lanes, *(frame[slot] for slot in operands))
            for slot, column in zip(results, columns, strict=True):
                frame[slot] = column

        return run

    def _pure(
        self, kernel: Kernel, context: Context, operands: list[int], results: list[int]
    ) -> Run:
        bodies = [body for body in context.bodies if body.captures]
        captures = [self.slot(value) for body in bodies for value in body.captures]
        inputs = operands + captures
        devices, arity = self.program.devices, len(operands)
        single = len(results) == 1

        def compute(arguments: list[Any]) -> tuple[Any, ...]:
            captured = iter(arguments[arity:])
            for body in bodies:
                body.captured = [next(captured) for _ in body.captures]
            return _values(kernel(*arguments[:arity]), single)

        def run(frame: Frame, lanes: Lanes) -> None:
            columns: list[Column] = [[None] * devices for _ in results]
            sources = [frame[slot] for slot in inputs]
            seen: dict[tuple[int, ...], tuple[Any, ...]] = {}
            for lane in lanes:
                arguments = [source[lane] for source in sources]
                key = tuple(map(id, arguments))
                outcome = seen.get(key)
                if outcome is None:
                    outcome = seen[key] = compute(arguments)
                for column, value in zip(columns, outcome, strict=True):
                    column[lane] = value
            for slot, column in zip(results, columns, strict=True):
                frame[slot] = column

        return run


def _values(outcome: Any, single: bool) -> tuple[Any, ...]:
    """What a kernel gives, as one value a result: it may give a lone array for a single result."""
    if not isinstance(outcome, (list, tuple)):
        return (_array(outcome),)
    several = cast("Sequence[Any]", outcome)
    assert not single or len(several) == 1
    return tuple(map(_array, several))


def _array(value: Any) -> Any:
    """NumPy gives scalars for arrays without dimensions; values of the program are arrays."""
    return value if isinstance(value, (Tuple, Token)) else np.asarray(value)


class Tuple(tuple[Any, ...]):
    """The value of a tuple type, so that it is not taken for several results."""

    __slots__ = ()


class Token:
    """The value of a token."""

    __slots__ = ()


_CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
_ON_BITS = {"stablehlo.constant", "stablehlo.bitcast_convert"}  # these see stored integers
_TERMINATORS = {"stablehlo.return", "func.return", "partir.yield", "sdy.return", "chlo.return"}


def _is_terminator(op: Operation) -> bool:
    return op.name in _TERMINATORS
