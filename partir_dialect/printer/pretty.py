"""How is an op written for people, as JAX prints it?

The table of formats is interpreted here; what does not depend on names is written once for each
combination of attributes and types. Ops with a syntax of their own are in `special`; an op
without any pretty form is written in generic form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Block, Operation, Region

from ..constants import to_numpy
from ..dtypes import real_part
from ..formats import (
    Body,
    Field,
    Format,
    Group,
    Literal,
    Operands,
    format_of,
)
from ..names import op_name
from .attributes import AttributeWriter, quoted, symbol_text
from .bridge import bridged
from .generic import HIDDEN, GenericPrinter
from .names import ValueNames

# pyright: reportPrivateUsage=false

_BRIDGED_DIALECTS = frozenset(("partir",))
_SHORT_IN_FUNCTIONS = {"func.return": "return", "func.call": "call"}

_ONE, _REST, _BODY = "one", "rest", "body"
Piece = tuple[str, str]
"""A text that stands as it is ("", text), or a place to fill (what, "")."""


class PrettyPrinter(GenericPrinter):
    """Writes the pretty form of each op that has one."""

    special: dict[str, Callable[[Any, Operation, str], bool]]

    def __init__(self, *, locations: bool) -> None:
        from .special import SPECIAL

        super().__init__(locations=locations)
        self.names = ValueNames(pretty=True)
        self.special = SPECIAL
        self._plans: dict[tuple[object, ...], list[Piece] | None] = {}
        self._in_function = False

    # Ops

    def op(self, op: Operation, indent: str) -> None:
        """Writes one op and what is in it."""
        name = op_name(op)
        special = self.special.get(name)
        if special is not None and special(self, op, indent):
            return
        form = format_of(name)
        plan = self._plan(form, op) if form is not None else None
        if plan is not None:
            self._filled(plan, op, indent)
        elif self._is_bridged(op):
            self.begin(op, indent)
            bridged(self, op, indent)
            self.end(op)
        else:
            super().op(op, indent)

    def _is_bridged(self, op: Operation) -> bool:
        own = type(op).print is not Operation.print
        return own and op.name.partition(".")[0] in _BRIDGED_DIALECTS

    def block(self, block: Block, indent: str) -> None:
        op = block._first_op
        while op is not None:
            self.op(op, indent)
            op = op._next_op

    def begin(self, op: Operation, indent: str) -> None:
        """Begins a line with the op's results and name."""
        name = op_name(op)
        if self._in_function:
            name = _SHORT_IN_FUNCTIONS.get(name, name)
        self.lines.append(f"{indent}{self.names.head(op)}{name}")

    def end(self, op: Operation) -> None:
        """Ends an op with its location."""
        if self.with_locations:
            self.lines[-1] += self.location(op.location)

    def regions(self, op: Operation, indent: str) -> None:
        outer, self._in_function = self._in_function, False
        super().regions(op, indent)
        self._in_function = outer

    def inner_region(
        self, region: Region, indent: str, *, named_entry: bool, in_function: bool = False
    ) -> None:
        """A region whose names have been entered; in a function `return` and `call` are short."""
        outer, self._in_function = self._in_function, in_function
        self.region(region, indent, named_entry=named_entry)
        self._in_function = outer

    def entry_arguments(self, block: Block) -> str:
        """`%a: t, %b: t` for a region whose op says its arguments."""
        return ", ".join([self.argument(argument) for argument in block.args])

    # Formats

    def _filled(self, plan: Sequence[Piece], op: Operation, indent: str) -> None:
        self.begin(op, indent)
        name_of = self.names.name
        operands = iter(op._operands)
        texts: list[str] = []
        for what, text in plan:
            if what == "":
                texts.append(text)
            elif what == _ONE:
                texts.append(name_of(next(operands)))
            elif what == _REST:
                texts.append(", ".join([name_of(value) for value in operands]))
            else:
                self.lines[-1] += "".join(texts)
                texts.clear()
                self._body(op, indent)
        self.lines[-1] += "".join(texts)
        self.end(op)

    def _body(self, op: Operation, indent: str) -> None:
        region = op.regions[0]
        mark = self.names.enter(region)
        self.lines[-1] += f"({self.entry_arguments(cast(Block, region.blocks.first))}) "
        self.inner_region(region, indent, named_entry=True)
        self.names.leave(mark)

    def _plan(self, form: Format, op: Operation) -> list[Piece] | None:
        key = self.frame_key(op)
        if key not in self._plans:
            self._plans[key] = _make_plan(self.writer, form, op)
        return self._plans[key]


def _make_plan(writer: AttributeWriter, form: Format, op: Operation) -> list[Piece] | None:
    """The pieces of an op's line, or nothing if the format cannot say this op."""
    types = TYPE_TEXTS[form.types](writer, op)
    if types is None or len(op.regions) != sum(isinstance(p, Body) for p in form.parts):
        return None
    if any(len(region.blocks) != 1 for region in op.regions) or op._successors:
        return None
    shown: dict[str, Attribute] = {}
    pieces: list[Piece] = []
    for part in _present(form, op):
        if isinstance(part, Operands):
            pieces.append((_REST if part.variadic else _ONE, ""))
        elif isinstance(part, Literal):
            pieces.append(("", part.text))
        elif isinstance(part, Field):
            values = [op.properties.get(name) for name in part.names]
            text = None if None in values else _field_text(writer, part.codec, values)
            if text is None:
                return None
            shown.update({name: op.properties[name] for name in part.names})
            pieces.append(("", text))
        else:
            pieces.append((_BODY if isinstance(part, Body) else "dict", ""))
    rest = {k: v for k, v in {**op.properties, **op.attributes}.items() if k not in shown}
    given = {k: v for k, v in rest.items() if k not in HIDDEN}
    if set(op.properties) & set(op.attributes):
        return None
    dictionary = writer.dictionary(given) if given else ""
    return _spaced(op, [("", dictionary) if p[0] == "dict" else p for p in pieces], types)


def _present(form: Format, op: Operation) -> list[Any]:
    parts: list[Any] = []
    for part in form.parts:
        if not isinstance(part, Group):
            parts.append(part)
        elif part.name in op.properties:
            parts.extend(part.parts)
    return parts


_TIGHT_BEFORE = frozenset(",([])>")
_TIGHT_AFTER = frozenset("([<")


def _spaced(op: Operation, pieces: list[Piece], types: str) -> list[Piece]:
    """The pieces with the blanks between them that MLIR writes."""
    tight_equals = op.name.startswith("sdy.") and op.name != "sdy.mesh"
    spaced: list[Piece] = []
    last = ""
    for index, (what, text) in enumerate(pieces):
        if what == "" and not text:
            continue
        if what == _REST and not op._operands and text == "":
            spaced.append((what, text))
            continue
        opens = text in ("(", "[", "<") if what == "" else False
        tight = (
            text in _TIGHT_BEFORE
            or text.startswith(", ")
            or last in _TIGHT_AFTER
            or (opens and (index == 0 or op.name in _TIGHT_BRACKETS))
            or (tight_equals and "=" in (text, last))
        )
        if not tight:
            spaced.append(("", " "))
        spaced.append((what, text))
        last = text if what == "" else what
    merged: list[Piece] = []
    for piece in [*spaced, ("", types)]:
        if merged and piece[0] == "" and merged[-1][0] == "":
            merged[-1] = ("", merged[-1][1] + piece[1])
        else:
            merged.append(piece)
    return merged


_TIGHT_BRACKETS = frozenset(
    ("func.call", "stablehlo.custom_call", "stablehlo.get_tuple_element", "sdy.named_computation")
)


# Fields


def _field_text(writer: AttributeWriter, codec: str, values: Sequence[Any]) -> str | None:
    if codec.startswith("#"):
        return _stripped(writer.text(values[0]), codec)
    kind, *arguments = codec.split()
    try:
        return FIELD_TEXTS[kind](writer, *values, *arguments)
    except (AttributeError, TypeError, ValueError, IndexError):
        return None  # not what the format expects: the generic form says it


def _stripped(text: str, codec: str) -> str | None:
    """The part of an attribute's text that a pretty form shows."""
    mark = "*" if "*" in codec else "@"
    prefix, _, suffix = codec.partition(mark)
    if not (text.startswith(prefix) and text.endswith(suffix)):
        return None
    body = text[len(prefix) : len(text) - len(suffix)].strip()
    if mark == "@":
        return body if body.isidentifier() else None
    return body if body[:1] in "<[{" else None


def _integers(writer: AttributeWriter, value: Any) -> str:
    return f"[{', '.join(map(str, value.get_values()))}]"


def _ranges(writer: AttributeWriter, starts: Any, limits: Any, strides: Any) -> str:
    rows = zip(starts.get_values(), limits.get_values(), strides.get_values(), strict=True)
    texts = [f"{a}:{b}" if step == 1 else f"{a}:{b}:{step}" for a, b, step in rows]
    return f"[{', '.join(texts)}]"


def _dot(writer: AttributeWriter, value: Any) -> str:
    parts = ""
    for kind in ("batching", "contracting"):
        left = list(getattr(value, f"lhs_{kind}_dimensions"))
        right = list(getattr(value, f"rhs_{kind}_dimensions"))
        if left or right or kind == "contracting":
            parts += f", {kind}_dims = {left} x {right}"
    return parts


def _precisions(writer: AttributeWriter, value: Any) -> str:
    words = [_stripped(writer.text(item), "#stablehlo<precision @>") for item in value.data]
    return f"[{', '.join(cast('list[str]', words))}]"


def _exmy(writer: AttributeWriter, exponent: Any, mantissa: Any) -> str:
    return f"e{exponent.value.data}m{mantissa.value.data}"


def _number(writer: AttributeWriter, value: Any) -> str:
    return str(value.value.data)


def _bool(writer: AttributeWriter, value: Any) -> str:
    return "true" if value.value.data else "false"


def _string(writer: AttributeWriter, value: Any) -> str:
    return quoted(value.data)


def _symbol(writer: AttributeWriter, value: Any) -> str:
    return symbol_text(value.data)


def _reference(writer: AttributeWriter, value: Any) -> str:
    return writer.text(value)


def _word(writer: AttributeWriter, value: Any, *words: str) -> str:
    index: int = value.value.data
    return words[index]


def _shape(writer: AttributeWriter, value: Any) -> str:
    return str(to_numpy(value).tolist())


FIELD_TEXTS: dict[str, Callable[..., str]] = {
    "i64": _number,
    "i32": _number,
    "bool": _bool,
    "string": _string,
    "symbol": _symbol,
    "symbol_reference": _reference,
    "enum": _word,
    "i64s": _integers,
    "exmy": _exmy,
    "precisions": _precisions,
    "ranges": _ranges,
    "dot": _dot,
    "shape": _shape,
}


# Types


def _operand_types(op: Operation) -> list[Attribute]:
    return [value.type for value in op._operands]


def _result_types(op: Operation) -> list[Attribute]:
    return [value.type for value in op.results]


def _function(writer: AttributeWriter, op: Operation) -> str:
    operands = writer.list(_operand_types(op))
    return f" : ({operands}) -> {writer.result_types(_result_types(op))}"


def _same(writer: AttributeWriter, op: Operation) -> str:
    types = [*_operand_types(op), *_result_types(op)]
    if len(op.results) == 1 and all(type_ == types[0] for type_ in types[1:]):
        return f" : {writer.text(types[0])}"
    return _function(writer, op)


def _operand(writer: AttributeWriter, op: Operation) -> str | None:
    types = [*_operand_types(op), *_result_types(op)]
    if len(op.results) != 1 or any(type_ != types[0] for type_ in types[1:]):
        return None
    return f" : {writer.text(types[0])}"


def _result(writer: AttributeWriter, op: Operation) -> str | None:
    if op._operands or len(op.results) != 1:
        return None
    return f" : {writer.text(op.results[0].type)}"


def _pair(writer: AttributeWriter, op: Operation) -> str | None:
    if _operand_types(op) != _result_types(op) or not op.results:
        return None
    return f" : {writer.list(_result_types(op))}"


def _select(writer: AttributeWriter, op: Operation) -> str | None:
    types = _operand_types(op)
    if len(types) != 3 or len(op.results) != 1:
        return None
    if types[1] == types[2] == op.results[0].type:
        return f" : {writer.list(types[:2])}"
    return _function(writer, op)


def _complex(writer: AttributeWriter, op: Operation) -> str | None:
    result = op.results[0].type if len(op.results) == 1 else None
    part = None if result is None else real_part(result)
    if result is not None and part is not None and _operand_types(op) == [part, part]:
        return f" : {writer.text(result)}"
    return _function(writer, op)


def _tuple(writer: AttributeWriter, op: Operation) -> str | None:
    result = op.results[0].type if len(op.results) == 1 else None
    if isinstance(result, TupleType) and list(result.types) == _operand_types(op):
        return f" : {writer.text(result)}"
    return _function(writer, op)


def _arrow(writer: AttributeWriter, op: Operation) -> str | None:
    if not op._operands or not op.results:
        return None
    results = writer.result_types(_result_types(op))
    return f" : {writer.list(_operand_types(op))} -> {results}"


def _operands(writer: AttributeWriter, op: Operation) -> str | None:
    if op.results:
        return None
    return f" : {writer.list(_operand_types(op))}" if op._operands else ""


def _none(writer: AttributeWriter, op: Operation) -> str | None:
    return None if op.results or op._operands else ""


TYPE_TEXTS: dict[str, Callable[[AttributeWriter, Operation], str | None]] = {
    "same": _same,
    "fn": _function,
    "operand": _operand,
    "result": _result,
    "pair": _pair,
    "select": _select,
    "complex": _complex,
    "tuple": _tuple,
    "arrow": _arrow,
    "operands": _operands,
    "none": _none,
}
