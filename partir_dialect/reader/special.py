"""Which ops have a pretty form of their own?

Modules, functions, constants, and the StableHLO ops whose syntax fits no row of the table:
`reduce`, `while`, `convolution`.
"""

from __future__ import annotations

import re
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region

from .operations import Argument, Draft
from .pretty import PrettyReader

_FLAG = re.compile(r"(?a)(?:true|false|0|1)\b")
_CONV_DIMENSION = re.compile(r"(?a)[a-z]|\d+|\?")


def module(reader: PrettyReader, draft: Draft) -> None:
    """`module @name attributes {…} { … }`."""
    if reader.peek("@"):
        draft.properties["sym_name"] = StringAttr(reader.symbol_name())
    if reader.accept_word("attributes"):
        draft.attributes = reader.dictionary()
    outer = reader.enter_isolated()
    draft.regions = [reader.region()]
    reader.leave_isolated(outer)
    if not draft.regions[0].blocks:
        draft.regions[0].add_block(Block())


def function(reader: PrettyReader, draft: Draft) -> None:
    """`func.func private @f(%a: t {…} loc(…)) -> (t {…}) attributes {…} { … }`."""
    for visibility in ("public", "private", "nested"):
        if reader.accept_word(visibility):
            draft.properties["sym_visibility"] = StringAttr(visibility)
    draft.properties["sym_name"] = StringAttr(reader.symbol_name())
    arguments: list[Argument | None] = []
    types: list[Attribute] = []
    attributes: list[DictionaryAttr] = []

    def argument() -> None:
        named = reader.peek("%")
        at, name = reader.new_name() if named else (reader.pos, "")
        if named:
            reader.expect(":")
        types.append(reader.type_())
        given = reader.dictionary() if reader.peek("{") else {}
        attributes.append(DictionaryAttr(given))
        location = reader.optional_location()
        arguments.append((name, types[-1], location, at) if named else None)

    reader.expect("(", "after a function's name")
    reader.comma_list(")", argument)
    named = [given for given in arguments if given is not None]
    if named and len(named) != len(arguments):
        reader.fail("either all arguments of a function have names or none")
    results, result_attributes = _function_results(reader)
    draft.properties["function_type"] = FunctionType.from_lists(types, results)
    if any(given.data for given in attributes):
        draft.properties["arg_attrs"] = ArrayAttr(attributes)
    if any(given.data for given in result_attributes):
        draft.properties["res_attrs"] = ArrayAttr(result_attributes)
    if reader.accept_word("attributes"):
        draft.attributes = reader.dictionary()
    if reader.peek("{"):
        outer = reader.enter_isolated()
        draft.regions = [reader.region(named)]
        reader.leave_isolated(outer)
    else:
        draft.regions = [Region()]


def _function_results(reader: PrettyReader) -> tuple[list[Attribute], list[DictionaryAttr]]:
    types: list[Attribute] = []
    attributes: list[DictionaryAttr] = []

    def result() -> None:
        types.append(reader.type_())
        given = reader.dictionary() if reader.peek("{") else {}
        attributes.append(DictionaryAttr(given))

    if reader.accept("->"):
        if reader.accept("("):
            reader.comma_list(")", result)
        else:
            types.append(reader.type_())
            attributes.append(DictionaryAttr({}))
    return types, attributes


def constant(reader: PrettyReader, draft: Draft) -> None:
    """`stablehlo.constant {…} dense<…> : t`, or the generic form without quotes."""
    if reader.peek("("):
        generic = reader.generic(draft.name, reader.pos)
        draft.__dict__.update(generic.__dict__)
        return
    reader.attribute_dictionary(draft)
    at = reader.pos
    value = reader.attribute()
    type_: Attribute | None = getattr(value, "type", None)
    if type_ is None:
        reader.fail("expected a constant with a type", at)
    if reader.accept("->"):
        type_ = reader.type_()
    draft.properties["value"] = value
    draft.result_types = [type_]


def reduce(reader: PrettyReader, draft: Draft) -> None:
    """`reduce(%x init: %i), (…) applies op across dimensions = [0] : …` or with a body."""
    inputs: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    while True:
        reader.expect("(", "before an operand of a reduce")
        inputs.append(reader.use())
        reader.expect_word("init")
        reader.expect(":")
        starts.append(reader.use())
        reader.expect(")")
        if not reader.accept(","):
            break
    draft.operands = inputs + starts
    applied, at = "", reader.pos
    if reader.accept_word("applies"):
        reader.skip()
        at = reader.pos
        applied = reader.word("the name of an op")
    reader.literal("across dimensions =")
    draft.properties["dimensions"] = reader.i64_array()
    reader.attribute_dictionary(draft)
    reader.expect(":")
    reader.function_types(draft)
    if applied:
        draft.regions = [_applied(reader, draft, applied, at)]
        draft.implicit_regions = True
        return
    draft.location = reader.optional_location()
    draft.regions = [_reducer(reader, len(inputs))]


def _scalar(reader: PrettyReader, type_: Attribute, at: int) -> Attribute:
    if not isinstance(type_, TensorType):
        reader.fail(f"expected a tensor, got: {type_}", at)
    return TensorType(cast("TensorType[Attribute]", type_).element_type, [])


def _applied(reader: PrettyReader, draft: Draft, name: str, at: int) -> Region:
    if len(draft.operand_types) != 2:
        reader.fail("'applies' is for a reduce of one operand", at)
    element = _scalar(reader, draft.operand_types[1], at)
    block = Block(arg_types=[element, element])
    body = reader.op_class(name, at).create(operands=block.args, result_types=[element])
    end = reader.op_class("stablehlo.return", at).create(operands=body.results)
    block.add_ops([body, end])
    return Region(block)


def _reducer(reader: PrettyReader, count: int) -> Region:
    """`reducer(%a: t, %b: t) (…) { … }`: left and right arguments come in pairs."""
    reader.expect_word("reducer")
    left: list[Argument] = []
    right: list[Argument] = []
    for _ in range(count):
        reader.expect("(")
        left.append(reader.block_argument())
        reader.expect(",")
        right.append(reader.block_argument())
        reader.expect(")")
    return reader.region([*left, *right])


def while_(reader: PrettyReader, draft: Draft) -> None:
    """`while(%a = %x, …) : t, … attributes {…} cond { … } do { … }`."""
    names: list[tuple[int, str]] = []
    operands: list[tuple[str, int]] = []

    def carry() -> None:
        names.append(reader.new_name())
        reader.expect("=")
        operands.append(reader.use())

    reader.expect("(")
    reader.comma_list(")", carry)
    draft.operands = operands
    types: list[Attribute] = []
    if operands:
        reader.expect(":")
        types = reader.types_until_end()
    reader.set_types(draft, types, types)
    location = reader.optional_location()
    draft.location = location
    if reader.accept_word("attributes"):
        draft.attributes = reader.dictionary()
    arguments: list[Argument] = [
        (name, type_, location, at) for (at, name), type_ in zip(names, types, strict=True)
    ]
    reader.expect_word("cond")
    condition = reader.region(arguments)
    reader.expect_word("do")
    draft.regions = [condition, reader.region(arguments)]


def _numbers(reader: PrettyReader) -> str:
    reader.skip()
    start = reader.pos

    def side() -> None:
        reader.expect("[")
        reader.comma_list("]", lambda: reader.need(_CONV_DIMENSION, "a dimension"))

    side()
    reader.expect("x")
    side()
    reader.expect("->")
    side()
    return reader.text[start : reader.pos]


def _window(reader: PrettyReader, draft: Draft) -> None:
    """`{stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = …, rhs_dilate = …, reverse = …}`."""

    def entry() -> None:
        at = reader.pos
        word = reader.plain_word("a window attribute")
        names = {
            "stride": "window_strides",
            "lhs_dilate": "lhs_dilation",
            "rhs_dilate": "rhs_dilation",
            "reverse": "window_reversal",
            "pad": "padding",
        }
        if word not in names:
            reader.fail(f"unknown window attribute, got: {word}", at, candidates=[*names])
        if names[word] in draft.properties:
            reader.fail(f"window attribute is given twice, got: {word}", at)
        reader.expect("=")
        draft.properties[names[word]] = _window_value(reader, word)

    reader.expect("{")
    reader.comma_list("}", entry)


def _window_value(reader: PrettyReader, word: str) -> Attribute:
    if word == "pad":
        return _padding(reader)
    if word == "reverse":
        reader.expect("[")
        flags = reader.comma_list("]", lambda: reader.need(_FLAG, "true or false")[0])
        return DenseArrayBase(i1, BytesAttr(bytes(flag in ("true", "1") for flag in flags)))
    return reader.i64_array()


def _padding(reader: PrettyReader) -> Attribute:
    reader.expect("[")
    at = reader.pos
    rows = reader.comma_list("]", reader.integers)
    if any(len(row) != 2 for row in rows):
        reader.fail("expected pairs of low and high padding", at)
    type_ = TensorType(i64, [len(rows), 2])
    return reader.dense_of(str(rows) if rows else "", False, type_, at)


def convolution(reader: PrettyReader, draft: Draft) -> None:
    """`convolution(%l, %r) dim_numbers = […]x[…]->[…], window = {…} {…} : …`."""
    reader.expect("(")
    draft.operands = reader.comma_list(")", reader.use)
    reader.literal("dim_numbers =")
    at = reader.pos
    draft.properties["dimension_numbers"] = reader.foreign(
        f"#stablehlo.conv<{_numbers(reader)}>", at, is_type=False
    )
    reader.literal(", window =")
    _window(reader, draft)
    reader.attribute_dictionary(draft)
    reader.expect(":")
    reader.function_types(draft)


def scan(reader: PrettyReader, draft: Draft) -> None:
    """`chlo.scan(%x, …) inits(%i, …) dimension=0 attributes {…} { … } : …`."""
    reader.expect("(")
    inputs = reader.comma_list(")", reader.use)
    reader.expect_word("inits")
    reader.expect("(")
    starts = reader.comma_list(")", reader.use)
    draft.operands = inputs + starts
    reader.literal("dimension =")
    draft.properties["dimension"] = IntegerAttr(reader.integer(), i64)
    if reader.accept_word("attributes"):
        draft.attributes = reader.dictionary()
    draft.regions = [reader.region()]
    reader.expect(":")
    reader.function_types(draft)
    outputs = len(draft.result_types) - len(starts)
    for name, counts in (
        ("operandSegmentSizes", (len(inputs), len(starts))),
        ("resultSegmentSizes", (outputs, len(starts))),
    ):
        draft.properties.setdefault(name, DenseArrayBase.from_list(i32, counts))


SPECIAL = {
    "chlo.scan": scan,
    "builtin.module": module,
    "func.func": function,
    "chlo.constant": constant,
    "sdy.constant": constant,
    "stablehlo.constant": constant,
    "stablehlo.reduce": reduce,
    "stablehlo.while": while_,
    "stablehlo.convolution": convolution,
    "stablehlo.dynamic_conv": convolution,
}
