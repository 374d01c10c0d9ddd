"""Which attribute does this text say?

Builtin attributes are parsed here, constants in `dense`, locations in `locations`; a dialect's own
attributes go to its class in the context.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    FloatData,
    IndexType,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute

from ..constants import dense_attribute
from ..dtypes import FLOAT_TYPES, integer_facts, numpy_dtype, type_text
from ..raw import RawAttr
from .dense import (
    BadConstant,
    blob_bytes,
    float_values,
    integer_values,
    literal_bytes,
)
from .scanner import Scanner, unescape
from .types import TypeReader

_NUMBER = re.compile(r"(?a)-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)(?![\w$])")
_SYMBOL = re.compile(r'(?a)@(?:([A-Za-z_][\w$.-]*)|"([^"\\\n]*(?:\\[^\n][^"\\\n]*)*)")')
_KEY = re.compile(r'(?a)[A-Za-z_][\w$.-]*|"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"')
_SIGIL_NAME = re.compile(r"(?a)#([A-Za-z_][\w$]*(?:\.[\w$-]+)*|\d+)")
_STRING_START = re.compile(r'(?a)"')
_HANDLE = re.compile(r'(?a)[A-Za-z_][\w$.-]*|"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"')
_ALIAS = re.compile(r"(?a)^[ \t]*([#!])([A-Za-z_][\w$.-]*|\d+)[ \t]*=(?!=)", re.MULTILINE)
_BLOB = re.compile(r'(?a)"([^"\\\n]*(?:\\[^\n][^"\\\n]*)*)"')
_STRUCTURAL_TYPES = re.compile(r"(?a)[A-Za-z(!]")
_FLOATS = set(FLOAT_TYPES.values())


def float_from_bits(bits: int, element: Attribute) -> float:
    """The value of a bit pattern of this float type, as a Python float."""
    dtype = numpy_dtype(element)
    return float(np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0])


def float_attribute(data: bytes, element: Attribute) -> FloatAttr[Any]:
    """A float attribute from the bytes of one element; NaN payloads of f64 and f32 survive."""
    dtype = numpy_dtype(element)
    if dtype == np.float32:
        value = struct.unpack("<f", data)[0]
    else:
        value = float(np.frombuffer(data, dtype)[0])
    attribute = FloatAttr.__new__(FloatAttr)
    object.__setattr__(attribute, "value", FloatData(value))
    object.__setattr__(attribute, "type", element)
    return cast("FloatAttr[Any]", attribute)


class AttributeReader(TypeReader):
    """The part of the reader that knows attributes, aliases and locations."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.attribute_memo: dict[str, Attribute] = {}
        self.aliases: dict[str, int] = {}
        self.resolved: dict[str, Attribute] = {}
        self.resolving: set[str] = set()
        self.late_aliases = 0
        for match in _ALIAS.finditer(self.text):
            name = match[1] + match[2]
            if name in self.aliases:
                self.fail(f"alias is defined twice, got: {name}", match.start(1))
            self.aliases[name] = match.start(1)

    # Aliases

    def alias(self, sigil: str, name: str, at: int) -> Attribute:
        """What an alias stands for; it may be used before its definition in locations only."""
        key = sigil + name
        where = self.aliases.get(key)
        if where is None:
            names = [n for n in self.aliases if n.startswith(sigil)]
            self.fail(f"undefined alias, got: {key}", at, name=key, candidates=names[:1000])
        if where > at and not self.late_aliases:
            self.fail(f"alias is used before its definition, got: {key}", at)
        found = self.resolved.get(key)
        if found is None:
            if key in self.resolving:
                self.fail(f"alias is defined by itself, got: {key}", where)
            self.resolving.add(key)
            back, self.pos = self.pos, where
            found = self.nested(lambda: self.alias_definition()[1])
            self.pos = back
            self.resolving.discard(key)
        return found

    def alias_definition(self) -> tuple[str, Attribute]:
        """`#name = attribute` or `!name = type`."""
        self.skip()
        key = self.need(re.compile(r"(?a)[#!](?:[A-Za-z_][\w$.-]*|\d+)"), "an alias")[0]
        if "." in key:
            self.fail(f"alias name cannot hold a dot, got: {key}", self.pos - len(key))
        self.expect("=")
        if key in self.resolved:
            if key[0] == "!":
                self.type_()
            else:
                self.attribute()
            return key, self.resolved[key]
        value = self.type_() if key[0] == "!" else self.attribute()
        self.resolved[key] = value
        return key, value

    # Attributes

    def attribute(self) -> Attribute:
        """An attribute. Raises `ReadError` where there is none."""
        self.skip()
        start = self.pos
        char = self.text[start : start + 1]
        reader = _BY_CHARACTER.get(char)
        if reader is not None:
            return reader(self)
        if char.isdigit() or char == "-":
            return self.number()
        word = self.peek_word()
        if (named := _BY_WORD.get(word)) is not None:
            return named(self)
        if _STRUCTURAL_TYPES.match(char):
            return self.type_()
        self.fail(f"expected an attribute, got: {self.found()}")

    def string_attribute(self) -> Attribute:
        start = self.pos
        value = StringAttr(self.string())
        if self.accept(":"):
            type_ = self.type_()
            if type_.name != "none":
                return RawAttr(StringAttr(self.text[start : self.pos]))
        return value

    def array_attribute(self) -> Attribute:
        self.expect("[")
        items = self.nested(lambda: self.comma_list("]", self.attribute))
        return ArrayAttr(items)

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = value, flag}` as a dictionary; a bare name is a unit attribute."""
        self.expect("{")
        entries: dict[str, Attribute] = {}

        def entry() -> None:
            self.skip()
            at = self.pos
            key = self.need(_KEY, "an attribute name")[0]
            if key.startswith('"'):
                key = unescape(key[1:-1])
            if key in entries:
                self.fail(f"attribute is given twice, got: {key}", at)
            entries[key] = self.attribute() if self.accept("=") else UnitAttr()

        self.nested(lambda: self.comma_list("}", entry))
        return entries

    def dictionary_attribute(self) -> Attribute:
        return DictionaryAttr(self.dictionary())

    def symbol(self) -> Attribute:
        """`@a::@b`."""
        names = [self.symbol_name()]
        while self.accept("::"):
            names.append(self.symbol_name())
        return SymbolRefAttr(names[0], names[1:])

    def symbol_name(self) -> str:
        """`@name` or `@"any text"`, without the sigil."""
        match = self.need(_SYMBOL, "a symbol")
        return match[1] if match[1] is not None else unescape(match[2])

    def sigil_attribute(self) -> Attribute:
        start = self.pos
        name = self.need(_SIGIL_NAME, "the name of an attribute")[1]
        if "." not in name and not self.text.startswith("<", self.pos):
            return self.alias("#", name, start)
        return self.dialect_symbol(start, name, is_type=False)

    def number(self) -> Attribute:
        start = self.pos
        text = self.need(_NUMBER, "a number")[0]
        is_float = "." in text
        type_: Attribute | None = None
        if self.accept(":"):
            type_ = self.type_()
        try:
            return self._number(text, is_float, type_)
        except BadConstant as error:
            self.fail(str(error), start)

    def _number(self, text: str, is_float: bool, type_: Attribute | None) -> Attribute:
        if type_ is None:
            type_ = FLOAT_TYPES["f64"] if is_float else i64
        if type_ in _FLOATS:
            if not is_float and "x" not in text:
                raise BadConstant(f"expected a float literal of type {type_text(type_)}")
            return float_attribute(float_values([text], type_), type_)
        facts = integer_facts(type_)
        if facts is None and not isinstance(type_, IndexType):
            raise BadConstant(f"a number cannot have this type, got: {type_}")
        if is_float:
            raise BadConstant(f"expected an integer literal of type {type_}, got: {text[:60]}")
        data = integer_values([text], type_)
        _, unsigned = facts or (64, False)
        value = int.from_bytes(data, "little", signed=not unsigned)
        if type_ == i1:
            value = -(value & 1)
        return cast(Attribute, IntegerAttr(value, cast(IndexType, type_)))

    # Words

    def boolean(self) -> Attribute:
        value = self.plain_word() == "true"
        return IntegerAttr(-1 if value else 0, i1)

    def unit(self) -> Attribute:
        self.plain_word()
        return UnitAttr()

    def dense_array(self) -> Attribute:
        """`array<i64: 1, 2>`."""
        start = self.pos
        self.expect_word("array")
        if (memo := self._memoised_array(start)) is not None:
            return memo
        self.expect("<")
        element = self.type_()
        texts: list[str] = []
        if self.accept(":"):
            word = re.compile(r"(?a)-?[\w.]+(?:[eE][-+]?\d+)?")
            texts = self.comma_list(">", lambda: self.need(word, "a number")[0])
        else:
            self.expect(">", "at the end of an array")
        if (facts := integer_facts(element)) and facts[0] not in (1, 8, 16, 32, 64):
            self.fail(f"element type of an array must be i1, i8, … i64, got: {element}", start)
        try:
            if facts:
                data = integer_values(texts, element) if texts else b""
            elif element in _FLOATS:
                data = float_values(texts, element) if texts else b""
            else:
                self.fail(f"array of a type that has no size, got: {element}", start)
        except BadConstant as error:
            self.fail(str(error), start)
        found = DenseArrayBase(cast(Any, element), BytesAttr(data))
        self.attribute_memo[self.text[start : self.pos]] = found
        return found

    def _memoised_array(self, start: int) -> Attribute | None:
        end = self.text.find(">", start)
        found = self.attribute_memo.get(self.text[start : end + 1])
        if found is not None:
            self.pos = end + 1
        return found

    def dense(self) -> Attribute:
        """`dense<…> : type`."""
        start = self.pos
        self.expect_word("dense")
        self.expect("<")
        blob = self.match(_BLOB)
        if blob is not None:
            self.expect(">", "at the end of a constant")
            body = unescape(blob[1])
        elif self.peek("["):
            body, blob = self._dense_body()
        else:
            end = self.text.find(">", self.pos)
            if end < 0:
                self.fail("constant is not closed", start)
            body, self.pos = self.text[self.pos : end], end + 1
        self.expect(":", "before the type of a constant")
        return self.dense_of(body, blob is not None, self.type_(), start)

    def _dense_body(self) -> tuple[str, None]:
        begin = self.pos
        end = self.text.find(">", begin)
        if end < 0:
            self.fail("constant is not closed", begin)
        if '"' in self.text[begin:end]:
            self.fail("constants of strings are not supported", begin)
        self.pos = end + 1
        return re.sub(r"//[^\n]*", "", self.text[begin:end]), None

    def dense_of(self, body: str, is_blob: bool, type_: Attribute, start: int) -> Attribute:
        """The constant of this type whose brackets hold `body`."""
        shape = getattr(type_, "get_shape", lambda: None)()
        if shape is None or any(size < 0 for size in shape):
            self.fail(f"type of a constant must have a static shape, got: {type_}", start)
        element = cast(Any, type_).get_element_type()
        try:
            if is_blob and not body.startswith("0x"):
                return self._string_constant(start)
            read = blob_bytes if is_blob else literal_bytes
            return dense_attribute(type_, read(body, shape, element))
        except BadConstant as error:
            self.fail(str(error), start)

    def _string_constant(self, start: int) -> Attribute:
        return RawAttr(StringAttr(self.text[start : self.pos]))

    def dense_resource(self) -> Attribute:
        """`dense_resource<handle> : type`; the data stay in the text's last section."""
        self.expect_word("dense_resource")
        self.expect("<")
        handle = self.need(_HANDLE, "the name of a resource")[0]
        self.expect(">")
        self.expect(":")
        name = unescape(handle[1:-1]) if handle.startswith('"') else handle
        return DenseResourceAttr(StringAttr(name), cast(Any, self.type_()))

    def raw(self) -> Attribute:
        """A builtin attribute that is carried as it stands."""
        start = self.pos
        self.plain_word()
        self.balanced()
        if self.peek("<"):
            self.balanced()
        if self.accept(":"):
            self.type_()
        return RawAttr(StringAttr(self.text[start : self.pos]))

    def affine(self) -> Attribute:
        start = self.pos
        self.plain_word()
        self.balanced()
        return self.foreign(self.text[start : self.pos], start, is_type=False)

    # A hook that the location reader fills in

    def location(self) -> LocationAttr:
        """`loc(…)`."""
        raise NotImplementedError

    def location_attribute(self) -> Attribute:
        return cast(Attribute, self.location())


_BY_CHARACTER: dict[str, Callable[[Any], Attribute]] = {
    '"': AttributeReader.string_attribute,
    "[": AttributeReader.array_attribute,
    "{": AttributeReader.dictionary_attribute,
    "@": AttributeReader.symbol,
    "#": AttributeReader.sigil_attribute,
}
_BY_WORD: dict[str, Callable[[Any], Attribute]] = {
    "true": AttributeReader.boolean,
    "false": AttributeReader.boolean,
    "unit": AttributeReader.unit,
    "array": AttributeReader.dense_array,
    "dense": AttributeReader.dense,
    "dense_resource": AttributeReader.dense_resource,
    "loc": AttributeReader.location_attribute,
    "affine_map": AttributeReader.affine,
    "affine_set": AttributeReader.affine,
    "sparse": AttributeReader.raw,
    "opaque": AttributeReader.raw,
    "distinct": AttributeReader.raw,
    "strided": AttributeReader.raw,
}
__all__ = ["AttributeReader", "Scanner", "float_attribute"]
