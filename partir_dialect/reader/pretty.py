"""Which op does this text say, in the form that people read?

Formats of the table (`formats`) are interpreted here; the few ops with a syntax of their own
have a function each in `special`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    TensorType,
    TupleType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ..formats import Field, Format, Group, Literal, Operands, format_of
from .operations import Draft, OperationReader

_EXMY = re.compile(r"e(\d+)m(\d+)")
_ENUM_WORD = re.compile(r"[A-Za-z_]\w*")


class PrettyReader(OperationReader):
    """The part of the reader that knows pretty forms."""

    special: dict[str, Callable[[Any, Draft], None]]

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
        operands: list[tuple[str, int]] = []
        for part in form.parts:
            if isinstance(part, Operands):
                self._operands(part, operands)
            elif isinstance(part, Literal):
                self.literal(part.text)
            elif isinstance(part, Field):
                self.field(part, draft)
            elif self._begins(part):
                for inner in part.parts:
                    if isinstance(inner, Literal):
                        self.literal(inner.text)
                    else:
                        self.field(inner, draft)
        draft.operands = operands
        self.attribute_dictionary(draft)
        TYPE_SHAPES[form.types](self, draft)

    def _operands(self, part: Operands, operands: list[tuple[str, int]]) -> None:
        if not part.variadic:
            operands.append(self.use())
            return
        operands.extend(self.uses())

    def uses(self) -> list[tuple[str, int]]:
        """`%a, %b, …`, perhaps none, perhaps in parentheses; stops before a comma that leads on."""
        found: list[tuple[str, int]] = []
        if self.accept("("):
            return self.comma_list(")", self.use)
        if not self.peek("%"):
            return found
        found.append(self.use())
        while True:
            back = self.pos
            if not self.accept(","):
                return found
            if not self.peek("%"):
                self.pos = back
                return found
            found.append(self.use())

    def _begins(self, group: Group) -> bool:
        """Whether an optional group stands here: its comma and its first word or field."""
        back = self.pos
        first, second = group.parts[0], group.parts[1]
        assert isinstance(first, Literal)
        here = self.accept(first.text)
        if here and isinstance(second, Literal):
            here = self.peek_word() == second.text.split()[0]
        self.pos = back
        return here

    def literal(self, text: str) -> None:
        """Words and punctuation of a format."""
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
            self.skip()
            start = self.pos
            body = self.balanced() if self.peek("<") else f"<{self.plain_word()}>"
            draft.properties[part.names[0]] = self.foreign(codec + body, start, is_type=False)
            return
        reader = CODECS.get(codec)
        if reader is not None:
            for name, value in zip(part.names, reader(self), strict=True):
                if value is not None:
                    draft.properties[name] = value
            return
        draft.properties[part.names[0]] = self.enum(codec)

    def enum(self, kind: str) -> Attribute:
        """A word of a StableHLO enumeration."""
        self.skip()
        start = self.pos
        word = self.need(_ENUM_WORD, f"a {kind.replace('_', ' ')}")[0]
        return self.foreign(f"#stablehlo<{kind} {word}>", start, is_type=False)

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

    def function_types(self, draft: Draft) -> None:
        """`(t, …) -> t`."""
        self.set_types(draft, *self.signature())

    def _colon(self) -> None:
        self.expect(":", "before the types of an op")


def _same(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    type_ = reader.type_()
    draft.operand_types = [type_] * len(draft.operands)
    draft.result_types = [type_]


def _result(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    reader.set_types(draft, [], [reader.type_()])


def _pair(reader: PrettyReader, draft: Draft) -> None:
    if not draft.operands and not reader.peek(":"):
        return
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    types = reader.types_until_end() if draft.operands else []
    reader.set_types(draft, types, types)


def _select(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    predicate = reader.type_()
    reader.expect(",", "between the types of a select")
    result = reader.type_()
    reader.set_types(draft, [predicate, result, result], [result])


def _complex(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    result = reader.type_()
    if not (isinstance(result, TensorType) and isinstance(result.element_type, ComplexType)):
        reader.fail(f"expected a tensor of complex numbers, got: {result}")
    part = TensorType(
        cast(Any, result.element_type).element_type, result.get_shape(), result.encoding
    )
    reader.set_types(draft, [part, part], [result])


def _tuple(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    result = reader.type_()
    if not isinstance(result, TupleType):
        reader.fail(f"expected a tuple type, got: {result}")
    reader.set_types(draft, list(result.types.data), [result])


def _arrow(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    operands = reader.types_until_end()
    reader.expect("->", "before the result types")
    reader.set_types(draft, operands, reader.result_types())


def _operand_types(reader: PrettyReader, draft: Draft) -> None:
    if not draft.operands:
        return
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    reader.set_types(draft, reader.types_until_end(), [])


def _function(reader: PrettyReader, draft: Draft) -> None:
    reader._colon()  # pyright: ignore[reportPrivateUsage]
    if reader.peek("("):
        reader.function_types(draft)
        return
    type_ = reader.type_()
    draft.operand_types = [type_] * len(draft.operands)
    draft.result_types = [type_]


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
}


def _integer(type_: Any) -> Callable[[PrettyReader], list[Attribute | None]]:
    def read(reader: PrettyReader) -> list[Attribute | None]:
        at = reader.pos
        value = reader.integer()
        width = type_.width.data
        if not -(1 << (width - 1)) <= value < 1 << width:
            reader.fail(f"integer does not fit {type_}, got: {value}", at)
        return [IntegerAttr(value, type_)]

    return read


def _bool(reader: PrettyReader) -> list[Attribute | None]:
    at = reader.pos
    word = reader.plain_word("true or false")
    if word not in ("true", "false"):
        reader.fail(f"expected true or false, got: {word}", at)
    return [IntegerAttr(-1 if word == "true" else 0, i1)]


def _exmy(reader: PrettyReader) -> list[Attribute | None]:
    match = reader.need(_EXMY, "a format such as e8m10")
    if max(len(match[1]), len(match[2])) > 9:
        reader.fail("format is too large", match.start())
    return [IntegerAttr(int(match[1]), i32), IntegerAttr(int(match[2]), i32)]


def _precisions(reader: PrettyReader) -> list[Attribute | None]:
    reader.expect("[")
    return [ArrayAttr(reader.comma_list("]", lambda: reader.enum("precision")))]


def _ranges(reader: PrettyReader) -> list[Attribute | None]:
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


def dot_numbers(reader: PrettyReader) -> Attribute:
    """`, batching_dims = [0] x [0], contracting_dims = [2] x [1]`, both optional."""
    reader.skip()
    start = reader.pos
    texts: dict[str, tuple[list[int], list[int]]] = {}
    for clause in ("batching_dims", "contracting_dims"):
        back = reader.pos
        if not (reader.accept(",") and reader.accept_word(clause)):
            reader.pos = back
            continue
        reader.expect("=")
        left = reader.integers()
        reader.expect("x")
        texts[clause] = (left, reader.integers())
    parts: list[str] = []
    for clause, name in (("batching_dims", "batching"), ("contracting_dims", "contracting")):
        for side, dims in zip(("lhs", "rhs"), texts.get(clause, ([], [])), strict=True):
            if dims:
                parts.append(f"{side}_{name}_dimensions = {dims}")
    return reader.foreign(f"#stablehlo.dot<{', '.join(parts)}>", start, is_type=False)


def _algorithm(reader: PrettyReader) -> list[Attribute | None]:
    reader.skip()
    start = reader.pos
    return [reader.foreign("#stablehlo.dot_algorithm" + reader.balanced(), start, is_type=False)]


CODECS: dict[str, Callable[[PrettyReader], list[Attribute | None]]] = {
    "i64": _integer(i64),
    "i32": _integer(i32),
    "i64s": lambda reader: [reader.i64_array()],
    "bool": _bool,
    "string": lambda reader: [StringAttr(reader.string())],
    "exmy": _exmy,
    "precisions": _precisions,
    "ranges": _ranges,
    "dot": lambda reader: [dot_numbers(reader)],
    "dot_algorithm": _algorithm,
}
