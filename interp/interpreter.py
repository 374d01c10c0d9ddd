"""What a program computes: on one device, or device by device on a simulated mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import argument_names
from . import (
    bits,
    collectives,
    control,
    convolution,
    dots,
    elementwise,
    folding,
    indexing,
    lapack,
    loops,
    manual,
    normalisation,
    parallel,
    shapes,
    solvers,
    sorting,
    windows,
)
from .attributes import shape_of
from .compiler import Program, declared
from .control import shared_again
from .faults import InterpreterError
from .registry import COMMUNICATION, CONTROL, KERNELS, Array

FAMILIES: tuple[ModuleType, ...] = (
    bits,
    collectives,
    control,
    convolution,
    dots,
    elementwise,
    folding,
    indexing,
    lapack,
    loops,
    manual,
    normalisation,
    parallel,
    shapes,
    solvers,
    sorting,
    windows,
)
"""The modules that give ops their meaning: importing them fills the tables of `registry`."""


def run(
    module: ModuleOp,
    inputs: Sequence[Array],
    *,
    observe: Callable[[SSAValue, Array], None] | None = None,
    reference: bool = False,
    function: str = "main",
) -> list[Array]:
    """The results of `function` on one device; `partir.loop`s run their iterations in order.

    `inputs` are one array an argument, of the declared shape and dtype. With `reference` every
    float is a double (complex numbers of doubles) and no rounding to narrower types happens;
    integers stay exact. `observe` is called with every value that an op makes, in order; ops in a
    loop body many times.

    Raises `InterpreterError` for inputs that do not fit and for ops without a meaning here.
    """
    observer = None if observe is None else _of_one_device(observe)
    program = Program(module, reference=reference, observe=observer)
    columns = [[array] for array in _fitted(program, function, inputs)]
    with np.errstate(all="ignore"):
        results = program.call(function, columns, (0,))
    return [column[0] for column in results]


def run_spmd(
    module: ModuleOp,
    mesh: Mesh,
    inputs: Sequence[Sequence[Array]],
    *,
    observe: Callable[[int, SSAValue, Array], None] | None = None,
    reference: bool = False,
    function: str = "main",
) -> list[list[Array]]:
    """The results of a device-local program on every device: `outputs[device][result]`.

    All devices run in lock step. `inputs[device][argument]` are local arrays; arrays that are equal
    on several devices are shared, and so is all that is computed from them alone.

    Raises `DeadlockError` when only part of a collective's group reaches it, `InterpreterError` as
    `run`.
    """
    if len(inputs) != mesh.devices:
        raise InterpreterError(f"inputs for {mesh.devices} devices are needed, got: {len(inputs)}")
    program = Program(module, devices=mesh.devices, mesh=mesh, reference=reference, observe=observe)
    fitted = [_fitted(program, function, local) for local in inputs]
    columns = [shared_again([local[k] for local in fitted]) for k in range(len(fitted[0]))]
    with np.errstate(all="ignore"):
        results = program.call(function, columns, range(mesh.devices))
    return [[column[device] for column in results] for device in range(mesh.devices)]


def _of_one_device(
    observe: Callable[[SSAValue, Array], None],
) -> Callable[[int, SSAValue, Array], None]:
    def observer(device: int, value: SSAValue, array: Array) -> None:
        observe(value, array)

    return observer


def has_meaning(name: str) -> bool:
    """Whether the interpreter can run ops of this name."""
    return name in KERNELS or name in CONTROL or name in COMMUNICATION


def _fitted(program: Program, function: str, inputs: Sequence[Array]) -> list[Array]:
    """The inputs checked against the arguments, in the dtypes of the mode."""
    func = program.symbol(function)
    types: Sequence[Attribute] = func.function_type.inputs.data
    if len(inputs) != len(types):
        raise InterpreterError(f"{function} takes {len(types)} arguments, got: {len(inputs)}")
    return [
        _fit(program, func, index, type_, array)
        for index, (type_, array) in enumerate(zip(types, inputs, strict=True))
    ]


def _fit(program: Program, func: FuncOp, index: int, type_: Attribute, array: Any) -> Any:
    if not isinstance(type_, TensorType):
        return array
    argument: Attribute = cast(Attribute, type_)
    array = np.asarray(array)
    wanted, shape = declared(argument), shape_of(argument)
    fits = len(shape) == array.ndim and all(
        n in (-1, m) for n, m in zip(shape, array.shape, strict=True)
    )
    stored = program.stored(wanted)
    if not fits or array.dtype not in (wanted, stored):
        raise InterpreterError(
            f"argument {argument_names(func)[index]!r} is {argument}, got: "
            f"{'x'.join(map(str, array.shape))} of {array.dtype}"
        )
    return array.astype(stored, copy=False)
