"""Which op does this text say, in the form that people read?

Formats of the table (`formats`) are interpreted here; the few ops with a syntax of their own
have a function each in `special`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    TupleType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ..dtypes import real_part
from ..formats import (
    Body,
    Dictionary,
    Field,
    Format,
    Group,
    Literal,
    Operands,
    format_of,
)
from .operations import Draft, OperationReader

_EXMY = re.compile(r"(?a)e(\d+)m(\d+)")


class PrettyReader(OperationReader):
    """The part of the reader that knows pretty forms."""

    special: ClassVar[dict[str, Callable[[Any, Draft], None]]]

    def pretty(self, name: str, at: int) -> Draft:
        """An op whose bare name has just been read."""
        draft = Draft(name)
        handler = self.special.get(name)
        if handler is not None:
            handler(self, draft)
            return draft
        form = format_of(name)
        if form is None:
            return self.bridged(name, at)
        self._formatted(form, draft)
        return draft

    def _formatted(self, form: Format, draft: Draft) -> None:
        draft.operands = []
        for part in form.parts:
            _PARTS[type(part)](self, part, draft)
        TYPE_SHAPES[form.types](self, draft)

    def _operands(self, part: Operands, draft: Draft) -> None:
        operands = cast("list[tuple[str, int]]", draft.operands)
        if part.variadic:
            operands.extend(self.uses())
        else:
            operands.append(self.use())

    def _group(self, group: Group, draft: Draft) -> None:
        back = self.pos
        first = group.parts[0]
        assert isinstance(first, Literal)
        here = self.accept(first.text)
        if here and isinstance(second := group.parts[1], Literal) and second.text != "=":
            here = self.peek_word() == second.text
        self.pos = back
        if here:
            for part in group.parts:
                _PARTS[type(part)](self, part, draft)

    def _body(self, part: Body, draft: Draft) -> None:
        self.expect("(", "before the arguments of a body")
        arguments = self.comma_list(")", self.block_argument)
        draft.regions = [self.region(arguments)]

    def uses(self) -> list[tuple[str, int]]:
        """`%a, %b, …`, perhaps none; stops before a comma that leads on."""
        found: list[tuple[str, int]] = []
        if not self.peek("%"):
            return found
        found.append(self.use())
        while True:
            back = self.pos
            if not (self.accept(",") and self.peek("%")):
                self.pos = back
                return found
            found.append(self.use())

    def literal(self, text: str) -> None:
        """A word or punctuation of a format."""
        for word in text.split():
            if word[0].isalpha():
                self.expect_word(word)
            else:
                self.expect(word)

    def attribute_dictionary(self, draft: Draft) -> None:
        """`{…}` if it comes next."""
        if self.peek("{"):
            at = self.pos
            for name, value in self.dictionary().items():
                if name in draft.properties:
                    self.fail(f"attribute is given twice, got: {name}", at)
                draft.attributes[name] = value

    # Fields

    def field(self, part: Field, draft: Draft) -> None:
        """Reads the attributes of a field into the draft's properties."""
        codec = part.codec
        if codec.startswith("#"):
            draft.properties[part.names[0]] = self.spelled(codec)
            return
        kind, *arguments = codec.split()
        values = CODECS[kind](self, *arguments)
        for name, value in zip(part.names, values, strict=True):
            draft.properties[name] = value

    def spelled(self, codec: str) -> Attribute:
        """A dialect's attribute of which only a bracket (`*`) or a word (`@`) is written."""
        self.skip()
        start = self.pos
        if self.text.startswith("#", start):
            return self.attribute()
        body = self.plain_word("a word") if "@" in codec else self._bracket()
        return self.foreign(re.sub("[*@]", lambda _: body, codec, count=1), start, is_type=False)

    def _bracket(self) -> str:
        if self.text[self.pos : self.pos + 1] not in ("<", "[", "{"):
            self.fail(f"expected a bracket, got: {self.found()}")
        return self.balanced()

    def integers(self) -> list[int]:
        """`[1, 2]`."""
        self.expect("[")
        return self.comma_list("]", self.integer)

    def i64_array(self) -> Attribute:
        """`[1, 2]` as `array<i64: 1, 2>`."""
        self.skip()
        start = self.pos
        end = self.text.find("]", start) + 1
        if (found := self.attribute_memo.get(self.text[start:end])) is not None:
            self.pos = end
            return found
        values = self.integers()
        if any(not -(1 << 63) <= value < 1 << 63 for value in values):
            self.fail("integer does not fit 64 bits", start)
        found = DenseArrayBase.from_list(i64, values)
        self.attribute_memo[self.text[start : self.pos]] = found
        return found

    # Types

    def types_until_end(self) -> list[Attribute]:
        """`t, t, …`."""
        types = [self.type_()]
        while self.accept(","):
            types.append(self.type_())
        return types

    def set_types(
        self, draft: Draft, operands: Sequence[Attribute], results: Sequence[Attribute]
    ) -> None:
        """Notes the types; they must be as many as the operands."""
        if len(operands) != len(draft.operands):
            self.fail(
                f"op has {len(draft.operands)} operands, but types are given for: {len(operands)}"
            )
        draft.operand_types, draft.result_types = operands, results

    def colon(self) -> None:
        """The colon before the types."""
        self.expect(":", "before the types of an op")

    def function_types(self, draft: Draft) -> None:
        """`(t, …) -> t`."""
        self.set_types(draft, *self.signature())


def _same(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    type_ = reader.type_()
    draft.operand_types = [type_] * len(draft.operands)
    draft.result_types = [type_]


def _result(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    reader.set_types(draft, [], [reader.type_()])


def _pair(reader: PrettyReader, draft: Draft) -> None:
    if not draft.operands and not reader.peek(":"):
        return
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    types = reader.types_until_end() if draft.operands else []
    reader.set_types(draft, types, types)


def _select(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    predicate = reader.type_()
    reader.expect(",", "between the types of a select")
    result = reader.type_()
    reader.set_types(draft, [predicate, result, result], [result])


def _complex(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    result = reader.type_()
    part = real_part(result)
    if part is None:
        reader.fail(f"expected a tensor of complex numbers, got: {result}")
    reader.set_types(draft, [part, part], [result])


def _tuple(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    result = reader.type_()
    if not isinstance(result, TupleType):
        reader.fail(f"expected a tuple type, got: {result}")
    reader.set_types(draft, list(result.types.data), [result])


def _arrow(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    operands = reader.types_until_end()
    reader.expect("->", "before the result types")
    reader.set_types(draft, operands, reader.result_types())


def _operand_types(reader: PrettyReader, draft: Draft) -> None:
    if not draft.operands:
        return
    reader.colon()
    reader.set_types(draft, reader.types_until_end(), [])


def _function(reader: PrettyReader, draft: Draft) -> None:
    reader.colon()
    if reader.peek("("):
        reader.function_types(draft)
        return
    type_ = reader.type_()
    draft.operand_types = [type_] * len(draft.operands)
    draft.result_types = [type_]


def _none(reader: PrettyReader, draft: Draft) -> None:
    """No types are written: there are neither operands nor results."""


TYPE_SHAPES: dict[str, Callable[[PrettyReader, Draft], None]] = {
    "same": _same,
    "operand": _same,
    "fn": _function,
    "result": _result,
    "pair": _pair,
    "select": _select,
    "complex": _complex,
    "tuple": _tuple,
    "arrow": _arrow,
    "operands": _operand_types,
    "none": _none,
}


def _integer(type_: Any) -> Callable[[PrettyReader], list[Attribute]]:
    def read(reader: PrettyReader) -> list[Attribute]:
        at = reader.pos
        value = reader.integer()
        width = type_.width.data
        if not -(1 << (width - 1)) <= value < 1 << width:
            reader.fail(f"integer does not fit {type_}, got: {value}", at)
        return [IntegerAttr(value, type_)]

    return read


def _bool(reader: PrettyReader) -> list[Attribute]:
    at = reader.pos
    word = reader.plain_word("true or false")
    if word not in ("true", "false"):
        reader.fail(f"expected true or false, got: {word}", at)
    return [IntegerAttr(-1 if word == "true" else 0, i1)]


def _enumeration(reader: PrettyReader, *words: str) -> list[Attribute]:
    at = reader.pos
    word = reader.plain_word(f"one of {', '.join(words)}")
    if word not in words:
        reader.fail(f"unknown word, got: {word}", at, name=word, candidates=list(words))
    return [IntegerAttr(words.index(word), i32)]


def _exmy(reader: PrettyReader) -> list[Attribute]:
    match = reader.need(_EXMY, "a format such as e8m10")
    if max(len(match[1]), len(match[2])) > 9:
        reader.fail("format is too large", match.start())
    return [IntegerAttr(int(match[1]), i32), IntegerAttr(int(match[2]), i32)]


def _precisions(reader: PrettyReader) -> list[Attribute]:
    reader.expect("[")
    one = "#stablehlo<precision @>"
    return [ArrayAttr(reader.comma_list("]", lambda: reader.spelled(one)))]


def _ranges(reader: PrettyReader) -> list[Attribute]:
    """`[0:4, 1:9:2]`: start, limit and stride for each dimension."""

    def one() -> tuple[int, int, int]:
        start = reader.integer()
        reader.expect(":")
        limit = reader.integer()
        return start, limit, reader.integer() if reader.accept(":") else 1

    reader.expect("[")
    at = reader.pos
    rows = reader.comma_list("]", one)
    if any(abs(value) >= 1 << 63 for row in rows for value in row):
        reader.fail("integer does not fit 64 bits", at)
    columns = [[row[index] for row in rows] for index in range(3)]
    return [DenseArrayBase.from_list(i64, column) for column in columns]


def _dot(reader: PrettyReader) -> list[Attribute]:
    """`, batching_dims = [0] x [0], contracting_dims = [2] x [1]`, both optional."""
    reader.skip()
    start = reader.pos
    parts: list[str] = []
    for name in ("batching", "contracting"):
        back = reader.pos
        if not (reader.accept(",") and reader.accept_word(f"{name}_dims")):
            reader.pos = back
            continue
        reader.expect("=")
        left = reader.integers()
        reader.expect("x")
        for side, dims in (("lhs", left), ("rhs", reader.integers())):
            if dims:
                parts.append(f"{side}_{name}_dimensions = {dims}")
    return [reader.foreign(f"#stablehlo.dot<{', '.join(parts)}>", start, is_type=False)]


def _shape(reader: PrettyReader) -> list[Attribute]:
    """`[4, 8]` as a constant of type index."""
    at = reader.pos
    values = reader.integers()
    type_ = TensorType(IndexType(), [len(values)])
    return [reader.dense_of(str(values) if values else "", False, type_, at)]


def _i64s(reader: PrettyReader) -> list[Attribute]:
    return [reader.i64_array()]


def _string(reader: PrettyReader) -> list[Attribute]:
    return [StringAttr(reader.string())]


def _symbol(reader: PrettyReader) -> list[Attribute]:
    return [StringAttr(reader.symbol_name())]


def _reference(reader: PrettyReader) -> list[Attribute]:
    return [reader.symbol()]


CODECS: dict[str, Callable[..., list[Attribute]]] = {
    "i64": _integer(i64),
    "i32": _integer(i32),
    "i64s": _i64s,
    "bool": _bool,
    "string": _string,
    "symbol": _symbol,
    "symbol_reference": _reference,
    "enum": _enumeration,
    "exmy": _exmy,
    "precisions": _precisions,
    "ranges": _ranges,
    "dot": _dot,
    "shape": _shape,
}

_PARTS: dict[type, Callable[[PrettyReader, Any, Draft], None]] = {
    Operands: PrettyReader._operands,  # pyright: ignore[reportPrivateUsage]
    Group: PrettyReader._group,  # pyright: ignore[reportPrivateUsage]
    Body: PrettyReader._body,  # pyright: ignore[reportPrivateUsage]
    Field: PrettyReader.field,
    Literal: lambda reader, part, draft: reader.literal(part.text),
    Dictionary: lambda reader, part, draft: reader.attribute_dictionary(draft),
}
