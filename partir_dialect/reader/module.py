"""Which module does this file hold?"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Dialect, Operation, Region

from ..context import make_context
from ..errors import ReadError, Span
from ..raw import RESOURCES
from .bytecode import BYTECODE, bytecode_text
from .partir import PARTIR
from .pretty import PrettyReader
from .special import SPECIAL
from .templates import link

_FOREIGN = {"arith": "Arith", "cf": "Cf", "scf": "Scf", "tensor": "Tensor"}
"""xDSL's own dialects that now and then stand beside StableHLO; loaded when met."""


def _foreign_dialect(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f"xdsl.dialects.{module}"), name)


def reading_context() -> Context:
    """A context in which a module is read: all our dialects, and a few of xDSL's."""
    return _base_context().clone()


@cache
def _base_context() -> Context:
    context = make_context(allow_unregistered=False)
    for module, name in _FOREIGN.items():
        context.register_dialect(module, _foreign_dialect(module, name))
    return context


class ModuleReader(PrettyReader):
    """Reads a whole text."""

    special: ClassVar = {**SPECIAL, **PARTIR}

    def read(self) -> ModuleOp:
        """The module; what stands outside one is put into one, as MLIR does."""
        self.start()
        ops: list[Operation] = []
        self.enter_region()
        self.enter_block()
        resources = ""
        while not self.at_end():
            if self.peek("{-#"):
                resources = self._resources()
            elif self.peek("#") or self.peek("!"):
                if not self.skip_quick_alias():
                    self.alias_definition()
            elif self.text[self.pos] in "}^{":
                self.fail(f"expected an op, got: {self.found()}")
            else:
                self.statements(ops)
        self.check_settled()
        module = _as_module(ops)
        if resources:
            module.attributes[RESOURCES] = StringAttr(resources)
        return module

    def _resources(self) -> str:
        start = self.pos
        end = self.text.find("#-}", start)
        if end < 0:
            self.fail("resources are not closed", start)
        self.pos = end + 3
        return self.text[start : self.pos]


def _as_module(ops: list[Operation]) -> ModuleOp:
    if len(ops) == 1 and isinstance(ops[0], ModuleOp):
        return ops[0]
    block = Block()
    link(block, ops)
    return ModuleOp(Region(block))


def _decoded(data: bytes, filename: str) -> str:
    if data.startswith(BYTECODE):
        return bytecode_text(data, filename)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        span = Span.at(filename, before, len(before))
        raise ReadError(
            f"text is not UTF-8, got byte: 0x{data[error.start]:02x}", span=span
        ) from None


def _check_characters(text: str, filename: str) -> None:
    """A text may hold no halves of surrogate pairs."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        span = Span.at(filename, text, error.start)
        code = ord(text[error.start])
        raise ReadError(f"text holds half a character, got: U+{code:04X}", span=span) from None


def read_module(text: str | bytes, filename: str = "<string>") -> ModuleOp:
    """The module that a text says, in pretty or generic form, with its locations.

    Bytes may be MLIR bytecode or a portable artifact, which jaxlib decodes if it is installed.
    Raises `ReadError` with the place at fault, for whatever is wrong with the text.
    """
    if isinstance(text, bytes):
        text = _decoded(text, filename)
    else:
        _check_characters(text, filename)
    reader = ModuleReader(text, filename, reading_context())
    limit = sys.getrecursionlimit()
    collecting = gc.isenabled()
    gc.disable()  # nothing of what is made here is garbage, and there is much of it
    try:
        sys.setrecursionlimit(max(limit, 6000))
        return reader.read()
    except RecursionError:
        reader.fail("text is nested too deeply")
    finally:
        if collecting:
            gc.enable()
        sys.setrecursionlimit(limit)
