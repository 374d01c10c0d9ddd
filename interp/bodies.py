"""How the region of a reduce, a scatter, a sort or a map is applied to whole arrays at once.

Such a region is a function of scalars. When every op in it is elementwise, the function is
evaluated on arrays by broadcasting; otherwise element by element. Values from outside the region
are `captures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .attributes import is_complex, is_tensor, shape_of, text
from .registry import ELEMENTWISE, KERNELS, Array

if TYPE_CHECKING:
    from .compiler import Program

_SCALAR_IDENTITIES = {
    "stablehlo.broadcast_in_dim",
    "stablehlo.reshape",
    "stablehlo.transpose",
    "stablehlo.optimization_barrier",
}
_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}
_COMMUTATIVE = {
    "stablehlo.add": np.add,
    "stablehlo.multiply": np.multiply,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}
Evaluate = Callable[[list[Any]], list[Any]]


class Body:
    """A region of scalars as a function of arrays.

    `ufunc` is the NumPy function of a body that is one commutative op of its two arguments,
    `returns` the number of the argument that the body merely gives back; both None for any other
    body.
    """

    def __init__(self, region: Region, program: Program) -> None:
        self.block = region.block
        self.captures = captures(region)
        self.captured: list[Any] = []
        self.ufunc = _single(self.block)
        self.returns = _returned(self.block)
        self._program = program
        self._evaluate: Evaluate | None = None

    @property
    def op_name(self) -> str | None:
        """The name of the only op of a body that has a `ufunc`."""
        first = self.block.first_op
        return first.name if self.ufunc is not None and first is not None else None

    def __call__(self, *arrays: Array) -> list[Array]:
        """The results for arrays that broadcast; raises what the ops raise."""
        if self._evaluate is None:
            self._evaluate = self._prepare()
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if arrays else ()
        outcome = self._evaluate([*arrays, *self.captured])
        return [np.broadcast_to(np.asarray(value), shape) for value in outcome]

    def _prepare(self) -> Evaluate:
        vectorised = _vectorise(self.block, self.captures, self._program)
        return vectorised or _element_by_element(self.block, self.captures, self._program)


def captures(region: Region) -> tuple[SSAValue, ...]:
    """The values defined outside a region that it uses, each once."""
    inside: set[SSAValue] = set()
    used: dict[SSAValue, None] = {}
    for block in region.blocks:
        inside.update(block.args)
    for op in region.walk():
        inside.update(op.results)
        for nested in op.regions:
            for block in nested.blocks:
                inside.update(block.args)
    for op in region.walk():
        used.update(dict.fromkeys(op.operands))
    return tuple(value for value in used if value not in inside)


def _single(block: Block) -> Any:
    ops = list(block.ops)
    if len(ops) != 2 or len(block.args) != 2 or ops[0].name not in _COMMUTATIVE:
        return None
    if tuple(ops[1].operands) != tuple(ops[0].results):
        return None
    ufunc = _COMMUTATIVE[ops[0].name] if set(ops[0].operands) == set(block.args) else None
    return None if ufunc is not None and _is_complex_extreme(ops[0]) else ufunc


def _is_complex_extreme(op: Operation) -> bool:
    type_ = op.results[0].type
    return is_complex(type_) and op.name in ("stablehlo.maximum", "stablehlo.minimum")


def _returned(block: Block) -> int | None:
    ops = list(block.ops)
    if len(ops) != 1 or len(ops[0].operands) != 1:
        return None
    value = ops[0].operands[0]
    return next((i for i, argument in enumerate(block.args) if argument is value), None)


# ----------------------------------------------------------------------------- vectorised


def _is_scalar(value: SSAValue) -> bool:
    type_: Attribute = value.type
    return is_tensor(type_) and not shape_of(type_)


def _vectorise(block: Block, captured: Sequence[SSAValue], program: Program) -> Evaluate | None:
    """The block as a function of arrays, or None if an op in it is not elementwise."""
    slots: dict[SSAValue, int] = {}
    for value in (*block.args, *captured):
        slots[value] = len(slots)
    steps: list[tuple[Callable[..., Any], list[int], int]] = []
    ops = list(block.ops)
    for op in ops[:-1]:
        if not all(map(_is_scalar, (*op.operands, *op.results))):
            return None
        kernel = _elementwise(op, program)
        if kernel is None:
            return None
        steps.append((kernel, [slots[value] for value in op.operands], len(slots)))
        for value in op.results:
            slots[value] = len(slots)
    returns = [slots[value] for value in ops[-1].operands]

    def evaluate(arguments: list[Any]) -> list[Any]:
        values: list[Any] = arguments
        for kernel, operands, _ in steps:
            outcome = kernel(*(values[slot] for slot in operands))
            values = [*values, *(outcome if isinstance(outcome, tuple | list) else (outcome,))]
        return [values[slot] for slot in returns]

    return evaluate


def _elementwise(op: Operation, program: Program) -> Callable[..., Any] | None:
    from .compiler import Context

    if op.name in _SCALAR_IDENTITIES:
        return _same
    if op.name in _CALLS:
        block = program.symbol(text(op, _CALLS[op.name])).body.block
        evaluate = _vectorise(block, (), program)
        return None if evaluate is None else _spread(evaluate)
    if op.name == "stablehlo.constant" or op.name in ELEMENTWISE:
        return KERNELS[op.name](op, Context(program))
    return None


def _same(*values: Any) -> tuple[Any, ...]:
    return values


def _spread(evaluate: Evaluate) -> Callable[..., Any]:
    def call(*values: Any) -> tuple[Any, ...]:
        return tuple(evaluate(list(values)))

    return call


# ----------------------------------------------------------------------------- element by element


def _element_by_element(block: Block, captured: Sequence[SSAValue], program: Program) -> Evaluate:
    from .compiler import Compiler, Frame, execute

    compiler = Compiler(program)
    inputs = [compiler.slot(value) for value in captured]
    code = compiler.block(block)
    arity = len(block.args)

    def one(scalars: Sequence[Any], outer: Sequence[Any]) -> list[Any]:
        frame: Frame = [None] * compiler.size
        for slot, value in zip((*code.arguments, *inputs), (*scalars, *outer), strict=True):
            frame[slot] = [value] * program.devices
        execute(code, frame, (0,))
        return [frame[slot][0] for slot in code.returns]

    def evaluate(arguments: list[Any]) -> list[Any]:
        arrays = np.broadcast_arrays(*arguments[:arity])
        rows = [one(scalars, arguments[arity:]) for scalars in _scalars(arrays)]
        if not rows:
            types = [value.type for value in block.last_op.operands]  # type: ignore[union-attr]
            return [np.zeros(arrays[0].shape, program.dtype(type_)) for type_ in types]
        shape = arrays[0].shape
        return [np.array([r[i] for r in rows]).reshape(shape) for i in range(len(rows[0]))]

    return evaluate


def _scalars(arrays: Sequence[Array]) -> Iterator[list[Array]]:
    for index in np.ndindex(arrays[0].shape):
        yield [np.asarray(array[index]) for array in arrays]
