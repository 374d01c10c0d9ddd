"""How are ops written whose class brings its own syntax?

Such a class prints with xDSL's printer. This one writes into our lines and hands names, types,
attributes and regions back to our printer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
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

    def print_attribute(self, attribute: Attribute) -> None:
        self.print_string(self._ours.writer.text(attribute))

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ours.names.ahead(value)
        self.print_string(name)
        return name[1:]

    def print_block_name(self, block: Block) -> str:
        name = self._ours.names.label(block)
        self.print_string(name)
        return name[1:]

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        self._ours.inner_region(region, self._indent_text, named_entry=not print_entry_block_args)


def bridged(printer: PrettyPrinter, op: Operation, indent: str) -> None:
    """Writes the syntax of an op after its name."""
    op.print(BridgePrinter(printer, indent))
