"""How is a type or an attribute written? Each one is written once and remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from io import StringIO
from typing import Any

from xdsl.dialects import builtin as b
from xdsl.ir import Attribute
from xdsl.printer import Printer

from ..constants import element_bytes_of
from ..dtypes import FLOAT_TYPES
from ..raw import RawAttr
from .dense import dense_text, element_texts, float_text

_BARE = re.compile(r"(?a)[A-Za-z_][\w$.-]*\Z")
_KEY = re.compile(r"(?a)[A-Za-z_][\w$]*(?:\.[\w$]+)*\Z")
_ESCAPED = re.compile(r'(?a)[^\x20-\x7e]|["\\]')


def _escape(match: re.Match[str]) -> str:
    if match[0] == "\\":
        return "\\\\"
    raw = match[0].encode("utf-8", "surrogateescape")
    return "".join(f"\\{byte:02X}" for byte in raw)


def quoted(text: str) -> str:
    """A string literal; what is not printable ASCII is written as bytes in hexadecimal."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def symbol_text(name: str) -> str:
    """`@name`, quoted where it has to be."""
    return "@" + (name if _BARE.match(name) else quoted(name))


@lru_cache(maxsize=4096)
def key_text(name: str) -> str:
    """The name of an attribute in a dictionary."""
    return name if _KEY.match(name) else quoted(name)


class _Bridge(Printer):
    """xDSL's printer for a dialect's own attribute; what is inside comes back to us."""

    def __init__(self, writer: AttributeWriter) -> None:
        self.buffer = StringIO()
        super().__init__(stream=self.buffer)
        self._writer = writer
        self._inside = False

    def print_attribute(self, attribute: Attribute) -> None:
        if self._inside:
            self.print_string(self._writer.text(attribute))
            return
        self._inside = True
        super().print_attribute(attribute)


class AttributeWriter:
    """Writes types and attributes; the same object is written once."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._kept: list[Attribute] = []

    def text(self, attribute: Attribute) -> str:
        """The text of a type or attribute."""
        found = self._texts.get(id(attribute))
        if found is None:
            writer = _WRITERS.get(type(attribute))
            found = writer(self, attribute) if writer else self._foreign(attribute)
            self._texts[id(attribute)] = found
            self._kept.append(attribute)  # an id is only good while its object lives
        return found

    def _foreign(self, attribute: Attribute) -> str:
        if (name := _FLOAT_NAMES.get(attribute)) is not None:
            return name
        bridge = _Bridge(self)
        bridge.print_attribute(attribute)
        return bridge.buffer.getvalue()

    def list(self, attributes: Iterable[Attribute]) -> str:
        """Texts with commas between."""
        return ", ".join([self.text(attribute) for attribute in attributes])

    def dictionary(self, entries: Mapping[str, Attribute]) -> str:
        """`{a = …, flag}`, sorted by name."""
        parts: list[str] = []
        for name in sorted(entries):
            text = self.text(entries[name])
            parts.append(key_text(name) if text == "unit" else f"{key_text(name)} = {text}")
        return "{" + ", ".join(parts) + "}"

    def result_types(self, types: list[Attribute] | tuple[Attribute, ...]) -> str:
        """What stands after an arrow: one type, or several in parentheses."""
        if len(types) == 1 and not isinstance(types[0], b.FunctionType):
            return self.text(types[0])
        return f"({self.list(types)})"


def _shape(sizes: Iterable[int]) -> str:
    return "".join(["?x" if size < 0 else f"{size}x" for size in sizes])


def _tensor(writer: AttributeWriter, attribute: Any) -> str:
    encoding = attribute.encoding
    tail = "" if isinstance(encoding, b.NoneAttr) else f", {writer.text(encoding)}"
    return f"tensor<{_shape(attribute.get_shape())}{writer.text(attribute.element_type)}{tail}>"


def _function(writer: AttributeWriter, attribute: Any) -> str:
    outputs = writer.result_types(attribute.outputs.data)
    return f"({writer.list(attribute.inputs)}) -> {outputs}"


def _integer(writer: AttributeWriter, attribute: Any) -> str:
    type_ = writer.text(attribute.type)
    value = attribute.value.data
    return ("true" if value else "false") if type_ == "i1" else f"{value} : {type_}"


def _float(writer: AttributeWriter, attribute: Any) -> str:
    data = element_bytes_of(attribute.value.data, attribute.type)
    return f"{float_text(data, attribute.type)} : {writer.text(attribute.type)}"


def _dense_array(writer: AttributeWriter, attribute: Any) -> str:
    element = attribute.elt_type
    texts = element_texts(attribute.data.data, element)
    head = writer.text(element)
    return f"array<{head}: {', '.join(texts)}>" if texts else f"array<{head}>"


def _symbol(writer: AttributeWriter, attribute: Any) -> str:
    names = [attribute.root_reference, *attribute.nested_references]
    return "::".join(symbol_text(name.data) for name in names)


def _resource(writer: AttributeWriter, attribute: Any) -> str:
    handle = attribute.resource_handle.data
    name = handle if _BARE.match(handle) else quoted(handle)
    return f"dense_resource<{name}> : {writer.text(attribute.type)}"


_WRITERS: dict[type[Attribute], Callable[[AttributeWriter, Any], str]] = {
    b.TensorType: _tensor,
    b.FunctionType: _function,
    b.TupleType: lambda w, a: f"tuple<{w.list(a.types)}>",
    b.ComplexType: lambda w, a: f"complex<{w.text(a.element_type)}>",
    b.UnrankedTensorType: lambda w, a: f"tensor<*x{w.text(a.element_type)}>",
    b.IntegerAttr: _integer,
    b.FloatAttr: _float,
    b.StringAttr: lambda w, a: quoted(a.data),
    b.ArrayAttr: lambda w, a: f"[{w.list(a.data)}]",
    b.DictionaryAttr: lambda w, a: w.dictionary(a.data),
    b.SymbolRefAttr: _symbol,
    b.UnitAttr: lambda w, a: "unit",
    b.DenseArrayBase: _dense_array,
    b.DenseIntOrFPElementsAttr: lambda w, a: dense_text(a, w.text(a.type)),
    b.DenseResourceAttr: _resource,
    RawAttr: lambda w, a: a.text.data,
}
_FLOAT_NAMES = {type_: name for name, type_ in FLOAT_TYPES.items()}
