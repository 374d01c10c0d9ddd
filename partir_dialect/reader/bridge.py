"""How are ops read whose class brings its own syntax?

Such a class parses with xDSL's parser. This one stands on our text and hands everything that is
not the op's own syntax (types, attributes, values, regions) back to our reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

if TYPE_CHECKING:
    from .operations import OperationReader

# pyright: reportPrivateUsage=false

_TYPE_START = re.compile(
    r"(?a)!|\(|(?:tensor|vector|memref|complex|tuple|index|none|[su]?i\d+|b?t?f\d\w*)\b"
)
_ATTRIBUTE_START = re.compile(r"(?a)[\[{\"@#!\d-]|(?:array|dense|true|false|unit|affine_map|loc)\b")


class BridgeParser(Parser):
    """xDSL's parser on our reader's text."""

    def __init__(self, reader: OperationReader) -> None:
        super().__init__(reader.context, reader.text, reader.file)
        self.reader = reader

    def read(self, op_class: type[Operation], at: int) -> Operation:
        """One op of this class, whose name has been read."""
        reader = self.reader
        self._resume_from(reader.pos)
        try:
            op = op_class.parse(self)
        except ParseError as error:
            reader.fail(error.msg.strip() or "syntax error", error.span.start)
        except (VerifyException, ValueError, NotImplementedError) as error:
            reader.fail(str(error).split("\n", maxsplit=1)[0], at)
        reader.pos = self._current_token.span.start
        return op

    def _ours(self) -> OperationReader:
        self.reader.pos = self._current_token.span.start
        return self.reader

    def _back(self, value: Any) -> Any:
        self._resume_from(self.reader.pos)
        return value

    def parse_attribute(self) -> Attribute:
        return self._back(self._ours().attribute())

    def parse_optional_attribute(self) -> Attribute | None:
        reader = self._ours()
        if _ATTRIBUTE_START.match(reader.text, reader.pos) or _TYPE_START.match(
            reader.text, reader.pos
        ):
            return self.parse_attribute()
        return None

    def parse_type(self) -> Any:
        return self._back(self._ours().type_())

    def parse_optional_type(self) -> Any:
        reader = self._ours()
        return self.parse_type() if _TYPE_START.match(reader.text, reader.pos) else None

    def parse_optional_location(self) -> LocationAttr | None:
        return self._back(self._ours().optional_location())

    def resolve_operand(self, operand: Any, type: Any) -> SSAValue[Any]:
        suffix = f"#{operand.index}" if operand.index else ""
        use = (f"%{operand.operand_name}{suffix}", operand.span.start)
        return self.reader.value(use, type)

    def parse_optional_region(
        self, arguments: Sequence[Parser.Argument] | None = None
    ) -> Region | None:
        reader = self._ours()
        if not reader.peek("{"):
            return None
        given = None
        if arguments is not None:
            given = [
                (a.name.text, a.type, getattr(a, "location", None), a.name.start) for a in arguments
            ]
        return self._back(reader.region(given))

    def parse_optional_successor(self) -> Block | None:
        reader = self._ours()
        label = reader.match(re.compile(r"(?a)\^[\w$.-]+"))
        if label is None:
            return None
        return self._back(reader.successor(label[0], label.start()))
