"""What is the program that is to be partitioned, and how is it read?

A `Program` keeps its text: the module is read from it anew whenever one is needed, since lowering
rewrites modules in place. Sources are `.mlir` text (pretty or generic), MLIR bytecode, and JAX
functions; the last two need `partir[jax]`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..engine.build import main_of
from ..partir_dialect.dtypes import type_text
from ..partir_dialect.errors import PartirError, ReadError
from ..partir_dialect.names import argument_names, result_names
from ..partir_dialect.reader import read_module, verify_module
from ..partir_dialect.reader.bytecode import BYTECODE, bytecode_text


@dataclass(frozen=True)
class Tensor:
    """An argument or a result of the global program: flat name, shape in elements, element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Program:
    """A global StableHLO program: its text and where it came from."""

    text: str
    filename: str = "<string>"
    _first: list[ModuleOp] = field(default_factory=list[ModuleOp], repr=False, compare=False)
    _seconds: list[float] = field(default_factory=list[float], repr=False, compare=False)

    @property
    def read_seconds(self) -> float:
        """How long the last reading of the text took."""
        return self._seconds[-1] if self._seconds else 0.0

    def module(self) -> ModuleOp:
        """The module, for the caller to keep and change; verified when it is read first.

        Raises `ReadError` for what is no valid module.
        """
        return self._first.pop() if self._first else self._read()

    def _read(self) -> ModuleOp:
        start = time.perf_counter()
        module = read_module(self.text, self.filename)
        if not self._seconds:
            verify_module(module, self.text, self.filename)
        self._seconds.append(time.perf_counter() - start)
        return module

    @cached_property
    def _main(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        if not self._first:
            self._first.append(self._read())
        main = main_of(self._first[0])
        return _tensors(main)

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """The arguments of main, in order, by flat name. Raises `ReadError`."""
        return self._main[0]

    @property
    def results(self) -> tuple[Tensor, ...]:
        """The results of main, in order, by flat name. Raises `ReadError`."""
        return self._main[1]


def _tensors(main: FuncOp) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    kind = main.function_type
    return (
        _named(argument_names(main), kind.inputs.data),
        _named(result_names(main), kind.outputs.data),
    )


def _named(names: Sequence[str], types: Sequence[Attribute]) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for name, type_ in zip(names, types, strict=True):
        if not isinstance(type_, TensorType):
            raise PartirError(f"{name} must be a tensor, got: {type_}")
        tensor = cast("TensorType[Attribute]", type_)
        found.append(Tensor(name, tensor.get_shape(), type_text(tensor.element_type)))
    return tuple(found)


def read(path: str | Path) -> Program:
    """Reads a program from a file of `.mlir` text or MLIR bytecode.

    Raises `PartirError` if the file cannot be read; what is in it is looked at by `Program.module`.
    """
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise PartirError(f"cannot read the program: {str(path)!r}: {error.strerror}") from error
    return read_text(source, str(path))


def read_text(source: str | bytes, filename: str = "<string>") -> Program:
    """A program from text or bytecode in memory; `filename` stands in error messages."""
    if isinstance(source, str):
        return Program(source, filename)
    if source.startswith(BYTECODE):
        return Program(bytecode_text(source, filename), filename)
    try:
        return Program(source.decode("utf-8"), filename)
    except UnicodeDecodeError as error:
        raise ReadError(f"neither UTF-8 text nor MLIR bytecode: {filename!r}") from error


def from_jax(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Program:
    """The program that JAX makes of `function` at these example arguments (arrays or shapes).

    A function that is not yet under `jax.jit` is put there with all its arguments kept. Argument
    names are the paths of the leaves, `params/layer_0/wq`.
    """
    jax: Any = importlib.import_module("jax")
    jitted: Any = function if hasattr(function, "lower") else jax.jit(function, keep_unused=True)
    lowered = jitted.lower(*arguments, **keywords)
    name = getattr(function, "__name__", "function")
    return Program(lowered.as_text(debug_info=True), f"<{name}>")
