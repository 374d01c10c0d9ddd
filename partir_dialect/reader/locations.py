"""Where does this text say that an op comes from?

Locations may name aliases that are defined after the module, and hang together in long chains.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from ..raw import file_range
from .attributes import AttributeReader

_LOCATION_TEXT = re.compile(r"(?a)loc\((#[\w$.-]+|unknown)\)")
_QUICK_ALIAS = re.compile(
    r'(?a)(#[A-Za-z_]\w*) = loc\((?:"(?P<name>[^"\\\n]*)"'
    r"(?:\((?P<inner>#[A-Za-z_]\w*)\)"
    r"|:(?P<line>\d{1,9}):(?P<column>\d{1,9})(?: to (?P<last>\d{0,9}):(?P<end>\d{1,9}))?)?"
    r"|callsite\((?P<callee>#[A-Za-z_]\w*) at (?P<caller>#[A-Za-z_]\w*)\))\)[ \t]*\r?$",
    re.MULTILINE,
)
"""An alias of a location as MLIR prints nearly all of them."""
_LONGEST_CHAIN = 200

_Unchecked = TypeVar("_Unchecked", bound=Attribute)
_NOTHING = NoneAttr()


def unchecked(kind: type[_Unchecked], **fields: Attribute) -> _Unchecked:
    """An attribute with these parameters, without xDSL's checks of what we just parsed."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


class LocationReader(AttributeReader):
    """The part of the reader that knows locations."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.location_memo: dict[str, LocationAttr] = {"unknown": UnknownLoc()}
        self._names: dict[str, StringAttr] = {}

    def optional_location(self) -> LocationAttr | None:
        """`loc(…)` if it comes next."""
        if self.peek_word() != "loc":
            return None
        return self.location()

    def location(self) -> LocationAttr:
        """`loc(…)`."""
        self.skip()
        if quick := _LOCATION_TEXT.match(self.text, self.pos):
            found = self.location_memo.get(quick[1]) or self.quick_location(quick[1])
            if found is not None:
                self.pos = quick.end()
                return found
        self.expect_word("loc")
        self.expect("(")
        self.late_aliases += 1
        found = self.location_body()
        self.late_aliases -= 1
        self.expect(")", "at the end of a location")
        if quick is not None and self.pos == quick.end():
            self.location_memo[quick[1]] = found
        return found

    def location_body(self) -> LocationAttr:
        """What stands between the parentheses of `loc(…)`, or inside another location."""
        self.skip()
        if self.text.startswith('"', self.pos):
            return self._named_location()
        if self.text.startswith("#", self.pos):
            at = self.pos
            found = self.sigil_attribute()
            if not isinstance(found, LocationAttr):
                self.fail(f"expected a location, got: {found}", at)
            return found
        word = self.peek_word()
        if word == "loc":
            return self.nested(self.location)
        if word == "unknown":
            self.plain_word()
            return UnknownLoc()
        if word == "callsite":
            return self.nested(self._call_site)
        if word == "fused":
            return self.nested(self._fused)
        self.fail(f"expected a location, got: {self.found()}")

    def quick_location(self, name: str) -> LocationAttr | None:
        """The location of an alias whose definition has a usual form, else nothing.

        Aliases hang together in long chains, so they are followed without recursion.
        """
        memo = self.location_memo
        waiting = [name]
        while waiting:
            alias = waiting[-1]
            where = self.aliases.get(alias)
            match = _QUICK_ALIAS.match(self.text, where) if where is not None else None
            if match is None or len(waiting) > _LONGEST_CHAIN:
                return None
            missing = [n for n in (match["inner"], match["callee"], match["caller"]) if n]
            missing = [n for n in missing if n not in memo]
            if not missing:
                memo[alias] = self.resolved[alias] = self._quick(match)
                waiting.pop()
            elif missing[0] in waiting:
                return None
            else:
                waiting.append(missing[0])
        return memo[name]

    def _quick(self, match: re.Match[str]) -> LocationAttr:
        memo = self.location_memo
        if match["callee"]:
            return CallSiteLoc(memo[match["callee"]], memo[match["caller"]])
        name = self._names.get(match["name"])
        if name is None:
            name = self._names[match["name"]] = StringAttr(match["name"])
        if match["inner"]:
            return unchecked(NameLoc, desc=name, location=memo[match["inner"]])
        if match["line"] is None:
            return unchecked(NameLoc, desc=name, location=_NOTHING)
        line, column = int(match["line"]), int(match["column"])
        if match["end"] is None:
            return unchecked(
                FileLineColLoc, filename=name, line=IntAttr(line), column=IntAttr(column)
            )
        last = int(match["last"] or line)
        return file_range(name.data, (line, column), (last, int(match["end"])))

    def skip_quick_alias(self) -> bool:
        """Moves past the definition of a location's alias of a usual form."""
        match = _QUICK_ALIAS.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match is not None

    def _named_location(self) -> LocationAttr:
        name = StringAttr(self.string())
        if self.accept(":"):
            line = self.integer()
            self.expect(":")
            return self._file_location(name, line, self.integer())
        if self.accept("("):
            inner = self.nested(self.location_body)
            self.expect(")", "at the end of a named location")
            return NameLoc(name, inner)
        return NameLoc(name, NoneAttr())

    def _file_location(self, name: StringAttr, line: int, column: int) -> LocationAttr:
        if not self.accept_word("to"):
            return FileLineColLoc(name, IntAttr(line), IntAttr(column))
        self.skip()
        end_line = line if self.text.startswith(":", self.pos) else self.integer()
        self.expect(":")
        end = self.integer()
        return file_range(name.data, (line, column), (end_line, end))

    def _call_site(self) -> LocationAttr:
        self.expect_word("callsite")
        self.expect("(")
        callee = self.location_body()
        self.expect_word("at")
        caller = self.location_body()
        self.expect(")", "at the end of a call site")
        return CallSiteLoc(callee, caller)

    def _fused(self) -> LocationAttr:
        self.expect_word("fused")
        metadata: Attribute = NoneAttr()
        if self.accept("<"):
            metadata = self.attribute()
            self.expect(">")
        self.expect("[")
        parts: list[Attribute] = [*self.comma_list("]", self.location_body)]
        return FusedLoc(ArrayAttr(parts), metadata)
