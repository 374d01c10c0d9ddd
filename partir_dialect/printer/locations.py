"""How is written where an op comes from? Distinct locations get an alias (`#loc12`) each."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
)
from xdsl.ir import Attribute

from ..raw import range_ends
from .attributes import AttributeWriter, quoted


class LocationWriter:
    """Writes locations; `definitions` gives the aliases that were used, in order."""

    def __init__(self, writer: AttributeWriter) -> None:
        self._writer = writer
        self._aliases: dict[int, str] = {}
        self._by_text: dict[str, str] = {}
        self._kept: list[Attribute] = []
        self.definitions: list[str] = []

    def alias(self, location: LocationAttr) -> str:
        """`#loc12`, defined in `definitions`."""
        found = self._aliases.get(id(location))
        if found is None:
            body = self.body(location, nested=self.alias)
            found = self._by_text.get(body)
            if found is None:
                number = len(self.definitions)
                found = self._by_text[body] = f"#loc{number or ''}"
                self.definitions.append(f"{found} = loc({body})")
            self._aliases[id(location)] = found
            self._kept.append(location)
        return found

    def inline(self, location: Any) -> str:
        """The location without aliases, for the inside of `loc(…)`."""
        return self.body(location, nested=self.inline)

    def body(self, location: Any, nested: Any) -> str:
        """The inside of `loc(…)`; `nested` writes the locations it holds."""
        if isinstance(location, FileLineColLoc):
            return _file(location)
        if isinstance(location, NameLoc):
            name = quoted(location.desc.data)
            inner = location.location
            return name if isinstance(inner, NoneAttr) else f"{name}({nested(inner)})"
        if isinstance(location, CallSiteLoc):
            return f"callsite({nested(location.callee)} at {nested(location.caller)})"
        if isinstance(location, FusedLoc):
            if ends := range_ends(location):
                start, end = ends
                return f"{_file(start)} to {end.line.data}:{end.column.data}"
            return self._fused(location, nested)
        return "unknown"

    def _fused(self, location: Any, nested: Any) -> str:
        inner = ", ".join(nested(part) for part in location.locations)
        if isinstance(location.metadata, NoneAttr):
            return f"fused[{inner}]"
        return f"fused<{self._writer.text(location.metadata)}>[{inner}]"


def _file(location: FileLineColLoc) -> str:
    name = quoted(location.filename.data)
    return f"{name}:{location.line.data}:{location.column.data}"
