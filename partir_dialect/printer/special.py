"""How are the ops written whose pretty form fits no row of the table?

Each function writes an op and says whether it could; if not, the generic form is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region

from ..constants import to_numpy
from .attributes import symbol_text
from .generic import HIDDEN

if TYPE_CHECKING:
    from .pretty import PrettyPrinter


def _dictionary(
    printer: PrettyPrinter, op: Operation, shown: Sequence[str], lead: str = " "
) -> str:
    rest: dict[str, Attribute] = {
        name: value
        for name, value in {**op.properties, **op.attributes}.items()
        if name not in shown and name not in HIDDEN
    }
    return f"{lead}{printer.writer.dictionary(rest)}" if rest else ""


def _types(printer: PrettyPrinter, op: Operation) -> str:
    operands = printer.writer.list([value.type for value in op.operands])
    results = printer.writer.result_types([value.type for value in op.results])
    return f" : ({operands}) -> {results}"


def _only_block(region: Region) -> Block | None:
    block = region.blocks.first
    return block if block is not None and block is region.blocks.last else None


def module(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`module @name attributes {…} { … }`."""
    name = op.properties.get("sym_name")
    if _only_block(op.regions[0]) is None or not _hides_block(op.regions[0]):
        return False
    text = f" {symbol_text(name.data)}" if isinstance(name, StringAttr) else ""
    given = _dictionary(printer, op, ("sym_name",), " attributes ")
    printer.lines.append(f"{indent}module{text}{given} ")
    printer.regions(op, indent)
    printer.end(op)
    return True


def _hides_block(region: Region) -> bool:
    block = region.blocks.first
    return block is None or (not block.args and block.first_use is None)


def function(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`func.func public @f(%a: t {…}) -> (t {…}) attributes {…} { … }`."""
    if not isinstance(op, FuncOp):
        return False
    first = op.body.blocks.first
    if first is not None and (
        first.first_use is not None or len(first.args) != len(op.function_type.inputs)
    ):
        return False
    visibility = f"{op.sym_visibility.data} " if op.sym_visibility else ""
    mark = printer.names.enter(op.body)
    head = f"{indent}func.func {visibility}{symbol_text(op.sym_name.data)}"
    arguments = _arguments(printer, op, first)
    results = _results(printer, op)
    shown = ["sym_name", "function_type", "sym_visibility"]
    shown += [name for name in ("arg_attrs", "res_attrs") if _said_inline(op, name)]
    given = _dictionary(printer, op, shown, " attributes ")
    printer.lines.append(f"{head}({arguments}){results}{given}")
    if first is not None:
        printer.lines[-1] += " "
        printer.inner_region(op.body, indent, named_entry=True, in_function=True)
    printer.names.leave(mark)
    printer.end(op)
    return True


def _said_inline(op: Operation, name: str) -> bool:
    """Whether some argument or result has attributes; lists of nothing are said apart."""
    entries: Any = op.properties.get(name)
    return entries is not None and any(getattr(entry, "data", None) for entry in entries.data)


def _given(attributes: Any, index: int) -> Mapping[str, Attribute]:
    entry = attributes.data[index] if attributes and index < len(attributes.data) else None
    return entry.data if isinstance(entry, DictionaryAttr) else {}


def _arguments(printer: PrettyPrinter, op: FuncOp, block: Block | None) -> str:
    parts: list[str] = []
    writer = printer.writer
    for index, type_ in enumerate(op.function_type.inputs.data):
        given = _given(op.arg_attrs, index)
        text = writer.text(type_)
        if block is not None:
            text = f"{printer.names.of[id(block.args[index])]}: {text}"
        if given:
            text += f" {writer.dictionary(given)}"
        if block is not None and printer.with_locations:
            text += f" loc({printer.places.inline(block.args[index].location)})"
        parts.append(text)
    return ", ".join(parts)


def _results(printer: PrettyPrinter, op: FuncOp) -> str:
    types = op.function_type.outputs.data
    if not types:
        return ""
    writer = printer.writer
    given = [_given(op.res_attrs, index) for index in range(len(types))]
    if len(types) == 1 and not given[0]:
        return f" -> {writer.result_types(types)}"
    texts = [
        f"{writer.text(type_)} {writer.dictionary(entry)}" if entry else writer.text(type_)
        for type_, entry in zip(types, given, strict=True)
    ]
    return f" -> ({', '.join(texts)})"


def constant(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`stablehlo.constant {…} dense<…> : t`."""
    value = op.properties.get("value")
    if value is None or getattr(value, "type", None) != op.results[0].type:
        return False
    printer.begin(op, indent)
    given = _dictionary(printer, op, ("value",))
    printer.lines[-1] += f"{given} {printer.writer.text(value)}"
    printer.end(op)
    return True


_COMMUTATIVE = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)


def reduce(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`reduce(%x init: %i) applies op across dimensions = [0] : …`, or with its body."""
    block = _only_block(op.regions[0])
    dimensions = op.properties.get("dimensions")
    if block is None or dimensions is None or block.first_use is not None or not op.results:
        return False
    half = len(op.operands) // 2
    name_of = printer.names.name
    pairs = zip(op.operands[:half], op.operands[half:], strict=True)
    inputs = ", ".join(f"({name_of(x)} init: {name_of(start)})" for x, start in pairs)
    applied = _applied(printer, op, block)
    printer.begin(op, indent)
    numbers = ", ".join(map(str, cast(Any, dimensions).get_values()))
    given = _dictionary(printer, op, ("dimensions",))
    middle = f" applies {applied}" if applied else ""
    printer.lines[-1] += (
        f"{inputs}{middle} across dimensions = [{numbers}]{given}{_types(printer, op)}"
    )
    if not applied:
        mark = printer.names.enter(op.regions[0])
        arguments = [printer.argument(argument) for argument in block.args]
        pairs_text = " ".join(
            f"({left}, {right})"
            for left, right in zip(arguments[:half], arguments[half:], strict=True)
        )
        printer.lines.append(f"{indent} reducer{pairs_text}  ")
        printer.inner_region(op.regions[0], indent, named_entry=True)
        printer.names.leave(mark)
    printer.end(op)
    return True


def _applied(printer: PrettyPrinter, op: Operation, block: Block) -> str:
    """The name of the op that the whole body is, if it is one that `applies` can say."""
    first, last = block.first_op, block.last_op
    if first is None or last is None or first.next_op is not last or len(op.operands) != 2:
        return ""
    if first.name not in _COMMUTATIVE or list(first.operands) != list(block.args):
        return ""
    if first.attributes or first.properties or last.attributes:
        return ""
    if last.name != "stablehlo.return" or not _scalars_agree(op, block, first):
        return ""
    places = [first.location, last.location, *[argument.location for argument in block.args]]
    if printer.with_locations and any(place != op.location for place in places):
        return ""
    return first.name


def _scalars_agree(op: Operation, block: Block, first: Operation) -> bool:
    start = op.operands[1].type
    types = [*[argument.type for argument in block.args], first.results[0].type]
    element = getattr(start, "element_type", None)
    return all(
        getattr(type_, "element_type", None) == element
        and getattr(type_, "get_shape", lambda: None)() == ()
        for type_ in types
    )


def while_(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`while(%a = %x, …) : t, … attributes {…} cond { … } do { … }`."""
    condition, body = (_only_block(region) for region in op.regions)
    if condition is None or body is None or condition.first_use or body.first_use:
        return False
    if len(condition.args) != len(op.operands) or len(body.args) != len(op.operands):
        return False
    hints = [argument.name_hint or "iterArg" for argument in condition.args]
    mark = printer.names.enter(op.regions[0], hints)
    names = [printer.names.of[id(argument)] for argument in condition.args]
    printer.begin(op, indent)
    values = map(printer.names.name, op.operands)
    carries = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    types = printer.writer.list([value.type for value in op.operands])
    printer.lines[-1] += f"({carries})" + (f" : {types}" if types else "")
    printer.lines[-1] += _dictionary(printer, op, (), " attributes ")
    printer.lines.append(f"{indent}cond ")
    printer.inner_region(op.regions[0], indent, named_entry=True)
    printer.names.leave(mark)
    printer.lines[-1] += " do "
    mark = printer.names.enter(op.regions[1], hints)
    printer.inner_region(op.regions[1], indent, named_entry=True)
    printer.names.leave(mark)
    printer.end(op)
    return True


def _window(printer: PrettyPrinter, op: Operation) -> str:
    parts: list[str] = []
    for word, name in (
        ("stride", "window_strides"),
        ("pad", "padding"),
        ("lhs_dilate", "lhs_dilation"),
        ("rhs_dilate", "rhs_dilation"),
        ("reverse", "window_reversal"),
    ):
        value: Any = op.properties.get(name)
        if value is None:
            continue
        if name == "padding":
            numbers = to_numpy(value).tolist()
        elif name == "window_reversal":
            numbers = [bool(flag) for flag in value.get_values()]
        else:
            numbers = list(value.get_values())
        parts.append(f"{word} = {str(numbers).replace('T', 't').replace('F', 'f')}")
    return f"{{{', '.join(parts)}}}"


def convolution(printer: PrettyPrinter, op: Operation, indent: str) -> bool:
    """`convolution(%l, %r) dim_numbers = […]x[…]->[…], window = {…} {…} : …`."""
    numbers = op.properties.get("dimension_numbers")
    if numbers is None:
        return False
    text = printer.writer.text(numbers)
    inside = text[text.index("<") + 1 : text.rindex(">")]
    if not inside.startswith("["):
        return False
    printer.begin(op, indent)
    operands = printer.names.operands(op)
    shown = (
        "dimension_numbers",
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "window_reversal",
    )
    printer.lines[-1] += (
        f"({operands}) dim_numbers = {inside}, window = {_window(printer, op)}"
        f"{_dictionary(printer, op, shown)}{_types(printer, op)}"
    )
    printer.end(op)
    return True


SPECIAL = {
    "builtin.module": module,
    "func.func": function,
    "chlo.constant": constant,
    "sdy.constant": constant,
    "stablehlo.constant": constant,
    "stablehlo.reduce": reduce,
    "stablehlo.while": while_,
    "stablehlo.convolution": convolution,
}
