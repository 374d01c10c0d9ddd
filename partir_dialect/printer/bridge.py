"""How are ops written whose class brings its own syntax?

Such a class prints with xDSL's printer. This one writes into our lines and hands names, types,
attributes and regions back to our printer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.printer import Printer

if TYPE_CHECKING:
    from .pretty import PrettyPrinter


class _Lines:
    """A stream that continues the last line of our printer."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines[-1] += text
        return len(text)


class BridgePrinter(Printer):
    """xDSL's printer for the syntax of one op."""

    def __init__(self, ours: PrettyPrinter, indent: str) -> None:
        stream: Any = _Lines(ours.lines)
        super().__init__(stream=stream)
        self._ours = ours
        self._indent_text = indent
        self._marks: dict[int, Any] = {}

    def _enter(self, region: Region | None) -> None:
        """Names a region of the op; the names stay until the op is written."""
        if region is not None and id(region) not in self._marks:
            self._marks[id(region)] = self._ours.names.enter(region)

    def finish(self) -> None:
        """Frees the names of the op's regions."""
        for mark in reversed(self._marks.values()):
            self._ours.names.leave(mark)

    def print_attribute(self, attribute: Attribute) -> None:
        self.print_string(self._ours.writer.text(attribute))

    def print_ssa_value(self, value: SSAValue) -> str:
        names = self._ours.names
        if id(value) not in names.of and isinstance(value, BlockArgument):
            self._enter(value.block.parent)
        name = names.name(value)
        self.print_string(name)
        return name[1:]

    def print_block_name(self, block: Block) -> str:
        name = self._ours.names.labels.get(id(block), "^<undefined>")
        self.print_string(name)
        return name[1:]

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        self._enter(region)
        self._ours.inner_region(region, self._indent_text, named_entry=not print_entry_block_args)


def bridged(printer: PrettyPrinter, op: Operation, indent: str) -> None:
    """Writes the syntax of an op after its name."""
    bridge = BridgePrinter(printer, indent)
    op.print(bridge)
    bridge.finish()
