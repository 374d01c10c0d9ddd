"""What stands for text that no class of ours understands?

A `RawAttr` is carried from the reader to the printer as it stands (`sparse<…>`, `opaque<…>`, a
string with a type). A range of a file, for which xDSL has no location, is a fused location of
its two ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

RESOURCES = "partir.resources"
"""Module attribute that carries the text of `{-# … #-}`; it is written as that section."""


@irdl_attr_definition
class RawAttr(ParametrizedAttribute):
    """An attribute known by its spelling alone."""

    name = "partir.raw"

    text: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_str_literal())]

    def print_parameters(self, printer: Printer) -> None:
        """Prints `<"text">`, the spelling as a string."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.text)


_RANGE = RawAttr(StringAttr("file range"))


def file_range(file: str, start: tuple[int, int], end: tuple[int, int]) -> FusedLoc:
    """`"file":1:2 to 3:4`, from (line, column) to (line, column)."""
    name = StringAttr(file)
    ends = [FileLineColLoc(name, IntAttr(line), IntAttr(column)) for line, column in (start, end)]
    return FusedLoc(ArrayAttr[Attribute](ends), _RANGE)


def range_ends(location: Attribute) -> tuple[FileLineColLoc, FileLineColLoc] | None:
    """The two ends if `location` was made by `file_range`."""
    if not isinstance(location, FusedLoc) or location.metadata != _RANGE:
        return None
    ends = cast("ArrayAttr[FileLineColLoc]", location.locations).data
    return ends[0], ends[1]
