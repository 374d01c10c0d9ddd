# ruff: noqa: E501
"""Small texts through the reader and the printer: jaxlib judges what they mean."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from partir.partir_dialect.constants import is_splat, to_numpy
from partir.partir_dialect.errors import ReadError
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.raw import range_ends
from partir.partir_dialect.reader import read_module, verify_module

PATH = Path(__file__).parents[1] / "reading_child.py"
_spec = importlib.util.spec_from_file_location("reading_child", PATH)
assert _spec is not None and _spec.loader is not None
child = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(child)


@pytest.fixture(scope="module")
def reprinter() -> Iterator[Any]:
    with child.Reprinter() as process:
        yield process


def same(reprinter: Any, text: str, *, unregistered: bool = False) -> ModuleOp:
    """Reads a text, asserts that both printed forms mean the same to jaxlib, and gives it back."""
    want = reprinter.generic(text, unregistered=unregistered)
    module = read_module(text)
    for pretty in (False, True):
        ours = print_module(module, pretty=pretty)
        assert reprinter.generic(ours, unregistered=unregistered) == want, ours
    return module


def ops(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def constant(text: str) -> DenseIntOrFPElementsAttr[Any]:
    (op,) = ops(read_module(f"%0 = stablehlo.constant {text}"), "stablehlo.constant")
    value = op.properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    return value


# --- constants ----------------------------------------------------------------------------------

CONSTANTS = [
    "dense<0xFF800000> : tensor<f32>",
    "dense<0xFF800000> : tensor<4xf32>",
    "dense<[0xFF800000, 1.0, 0x7FC00001, -0.0]> : tensor<4xf32>",
    "dense<0x7FF0000000000001> : tensor<f64>",
    "dense<0x7C00> : tensor<f16>",
    "dense<[0x7F80, 0xFFC1]> : tensor<2xbf16>",
    "dense<0x7F> : tensor<2xf8E4M3FN>",
    "dense<[0x7C, 0xFC]> : tensor<2xf8E5M2>",
    "dense<(0x7F800000,1.0)> : tensor<complex<f32>>",
    "dense<[(1.0,-2.0), (0x7FC00000,0.0)]> : tensor<2xcomplex<f32>>",
    "dense<(1.0,2.0)> : tensor<3x2xcomplex<f64>>",
    "dense<[[1, -8], [7, 0]]> : tensor<2x2xi4>",
    "dense<[0, 15]> : tensor<2xui4>",
    "dense<[true, false, true]> : tensor<3xi1>",
    "dense<true> : tensor<i1>",
    "dense<[0, 18446744073709551615]> : tensor<2xui64>",
    "dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>",
    "dense<> : tensor<0xf32>",
    "dense<> : tensor<2x0xi32>",
    "dense<0.899999976> : tensor<f32>",
    "dense<3.40282347E+38> : tensor<f32>",
    "dense<1.17549435E-38> : tensor<f32>",
    "dense<1.000000e-45> : tensor<f32>",
    "dense<4.9406564584124654E-324> : tensor<f64>",
    "dense<16777216.0> : tensor<f32>",
    "dense<123456.703> : tensor<f32>",
    "dense<0.1> : tensor<bf16>",
    "dense<65504.0> : tensor<f16>",
    'dense<"0x01FFFEFF"> : tensor<2xi16>',
    'dense<"0x0000803F000000C0"> : tensor<2xf32>',
    "dense<[" + ", ".join(f"{i}.5" for i in range(150)) + "]> : tensor<150xf32>",
    "dense<[" + ", ".join(str(i % 3 - 1) for i in range(120)) + "]> : tensor<120xi4>",
    "dense<[" + ", ".join(["true", "false"] * 60) + "]> : tensor<120xi1>",
]


@pytest.mark.parametrize("text", CONSTANTS, ids=lambda text: text[:48])
def test_constants_keep_every_bit(reprinter: Any, text: str) -> None:
    same(reprinter, f"func.func @f() {{\n  %0 = stablehlo.constant {text}\n  return\n}}")


def test_hexadecimal_literals_are_bit_patterns() -> None:
    assert to_numpy(constant("dense<0xFF800000> : tensor<f32>")) == -np.inf
    values = to_numpy(constant("dense<[0x7FC00001, 0x3F800000]> : tensor<2xf32>"))
    assert values.view(np.uint32).tolist() == [0x7FC00001, 0x3F800000]
    pair = to_numpy(constant("dense<(0x7F800000,-1.0)> : tensor<complex<f32>>"))
    assert pair == complex(np.inf, -1)
    assert to_numpy(constant("dense<0xFF> : tensor<2xi16>")).tolist() == [255, 255]


def test_splats_stay_one_element() -> None:
    value = constant("dense<1.5> : tensor<100000x100000xf32>")
    assert len(value.data.data) == 4
    assert is_splat(value)
    assert to_numpy(value).shape == (100000, 100000)
    assert len(constant("dense<[2, 2, 2]> : tensor<3xi32>").data.data) == 4


def test_float_literals_are_rounded_once() -> None:
    """1.00390625 + 2^-30 lies just above the middle of two bf16 values; through f32 it ties down."""
    value = constant("dense<1.003906250931322574615478515625> : tensor<bf16>")
    assert value.data.data == (0x3F81).to_bytes(2, "little")


@pytest.mark.parametrize(
    "text",
    [
        "dense<1> : tensor<f32>",
        "dense<1.0> : tensor<i32>",
        "dense<256> : tensor<i8>",
        "dense<-1> : tensor<ui8>",
        "dense<true> : tensor<i32>",
        "dense<0x1FFFFFFFF> : tensor<f32>",
        "dense<[1, 2]> : tensor<3xi32>",
        "dense<[[1, 2]]> : tensor<2xi32>",
        "dense<[1, [2]]> : tensor<2xi32>",
        "dense<> : tensor<1xi32>",
        "dense<(1.0,2.0)> : tensor<f32>",
        "dense<1.0> : tensor<complex<f32>>",
        "dense<1> : tensor<?xi32>",
        'dense<"0x0102"> : tensor<3xi32>',
        'dense<"0xZZ"> : tensor<1xi8>',
    ],
)
def test_constants_that_do_not_fit_are_rejected(reprinter: Any, text: str) -> None:
    whole = f"func.func @f() {{\n  %0 = stablehlo.constant {text}\n  return\n}}"
    with pytest.raises(child.Rejected):
        reprinter.generic(whole)
    with pytest.raises(ReadError) as caught:
        read_module(whole, "c.mlir")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


# --- forms --------------------------------------------------------------------------------------


def test_three_spellings_are_one_op(reprinter: Any) -> None:
    spellings = (
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
        '%0 = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> '
        ": (tensor<2x3xf32>) -> tensor<3x2xf32>",
        '%0 = "stablehlo.transpose"(%a) {permutation = array<i64: 1, 0>} '
        ": (tensor<2x3xf32>) -> tensor<3x2xf32>",
    )
    texts: set[str] = set()
    for spelling in spellings:
        module = same(
            reprinter,
            f"func.func @f(%a: tensor<2x3xf32>) {{\n  {spelling}\n  return\n}}",
        )
        (op,) = ops(module, "stablehlo.transpose")
        assert list(op.properties) == ["permutation"]
        assert not op.attributes
        texts.add(print_module(module))
    assert len(texts) == 1


TEXTS = {
    "blocks": """
func.func @f(%a: tensor<i1>, %n: i1) -> tensor<i1> {
  cf.cond_br %n, ^yes(%a : tensor<i1>), ^no
^no:
  cf.br ^yes(%a : tensor<i1>)
^yes(%b: tensor<i1>):
  return %b : tensor<i1>
}""",
    "variadic reduce": """
func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>, %x: tensor<f32>, %y: tensor<i32>)
    -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = stablehlo.reduce(%a init: %x), (%b init: %y) across dimensions = [1]
    : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%c: tensor<f32>, %d: tensor<f32>) (%e: tensor<i32>, %g: tensor<i32>) {
    %1 = stablehlo.add %c, %d : tensor<f32>
    %2 = stablehlo.add %e, %g : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}""",
    "reduce with one value twice": """
func.func @f(%a: tensor<8xf32>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.reduce(%a init: %x) applies stablehlo.maximum across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.maximum across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}""",
    "while": """
func.func @f(%n: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %n) : tensor<i32> attributes {note = "x"}
    cond {
      %c = stablehlo.constant dense<10> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %i : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
  return %0 : tensor<i32>
}""",
    "tokens and tuples": """
func.func @f(%a: tensor<2xf32>, %t: !stablehlo.token) -> tuple<tensor<2xf32>, !stablehlo.token> {
  %0 = stablehlo.after_all %t, %t : !stablehlo.token
  %1 = stablehlo.tuple %a, %0 : tuple<tensor<2xf32>, !stablehlo.token>
  %2 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<2xf32>, !stablehlo.token>)
    -> !stablehlo.token
  return %1 : tuple<tensor<2xf32>, !stablehlo.token>
}""",
    "bounded and dynamic": """
func.func @f(%a: tensor<?x4xf32, #stablehlo.bounds<3, ?>>) -> tensor<*xf32> {
  %0 = "stablehlo.custom_call"(%a) <{call_target_name = "x"}>
    : (tensor<?x4xf32, #stablehlo.bounds<3, ?>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}""",
    "several functions": """
module @"a name" attributes {mhlo.num_partitions = 2 : i32, x.y = [1, "s\\22\\0A", unit, {a, b = 2.0}]} {
  func.func private @outside(tensor<2xf32>) -> tensor<2xf32>
  func.func public @main(%arg0: tensor<2xf32> {mhlo.sharding = "{replicated}"}, %arg1: tensor<2xf32>)
      -> (tensor<2xf32> {jax.result_info = "r"}) attributes {z = -1.5 : f32} {
    %0 = call @"<lambda>"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.composite "my.op" %0 {composite_attributes = {k = 1 : i32}, decomposition = @outside}
      : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @"<lambda>"(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}""",
    "resources": """
func.func @f() -> tensor<2xi32> {
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xi32>
  return %0 : tensor<2xi32>
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000100000002000000"
    }
  }
#-}""",
    "aliases": """
#two = array<i64: 1, 0>
!m = tensor<2x3xf32>
#arr = [#two, !m]
func.func @f(%a: !m) -> tensor<3x2xf32> attributes {x = #arr} {
  %0 = "stablehlo.transpose"(%a) <{permutation = #two}> : (!m) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}""",
    "nested regions": """
func.func @f(%i: tensor<i32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %2 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""",
    "sdy": """
sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>})
    -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x", "y"}, {}]> : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    sdy.return %b : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}""",
    "chlo": """
func.func @f(%a: tensor<4xf32>) -> tensor<2xi32> {
  %0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.next_after %0, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %values, %indices = chlo.top_k(%1, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %indices : tensor<2xi32>
}""",
    "uses of a value from an outer region": """
func.func @f(%p: tensor<i1>, %a: tensor<2xf32>) -> tensor<2xf32> {
  %k = stablehlo.add %a, %a : tensor<2xf32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.multiply %k, %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    %1 = stablehlo.subtract %k, %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_forms_mean_what_jaxlib_says(reprinter: Any, name: str) -> None:
    module = same(reprinter, TEXTS[name])
    verify_module(module, TEXTS[name])


def test_unregistered_ops_are_carried(reprinter: Any) -> None:
    text = """
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "mhlo.foo"(%a) <{p = 1 : i32}> ({
  ^bb0(%b: tensor<2xf32>):
    "other.end"(%b) : (tensor<2xf32>) -> ()
  }) {d = #other.attr<"x", [1]>} : (tensor<2xf32>) -> (tensor<2xf32>, !other.type<3>)
  return %0#0 : tensor<2xf32>
}"""
    module = same(reprinter, text, unregistered=True)
    (op,) = [op for op in module.walk() if len(op.results) == 2]
    assert isinstance(op, UnregisteredOp)
    assert op.op_name.data == "mhlo.foo"


def test_the_same_line_with_other_names_is_read_alike(reprinter: Any) -> None:
    """Templates: strings that hold a percent sign, values used twice, operands in another order."""
    text = """
func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<2xf32>
  %1 = stablehlo.subtract %b, %a : tensor<2xf32>
  %2 = stablehlo.subtract %1, %1 : tensor<2xf32>
  %3 = stablehlo.custom_call @x(%2) {note = "%a"} : (tensor<2xf32>) -> tensor<2xf32>
  %4 = stablehlo.custom_call @x(%3) {note = "%b"} : (tensor<2xf32>) -> tensor<2xf32>
  %5 = stablehlo.custom_call @x(%4) {note = "100 % loc(#a)"} : (tensor<2xf32>) -> tensor<2xf32>
  %6 = stablehlo.subtract %0, %5 : tensor<2xf32> loc("x")
  return %6 : tensor<2xf32>
}"""
    module = same(reprinter, text)
    first, second, third, fourth = ops(module, "stablehlo.subtract")
    main = next(op for op in module.walk() if isinstance(op, FuncOp))
    a, b = main.body.block.args
    assert list(first.operands) == [a, b]
    assert list(second.operands) == [b, a]
    assert list(third.operands) == [second.results[0], second.results[0]]
    notes = [op.attributes["note"] for op in ops(module, "stablehlo.custom_call")]
    assert [note.data for note in notes if isinstance(note, StringAttr)] == [
        "%a",
        "%b",
        "100 % loc(#a)",
    ]
    assert fourth.location == NameLoc(StringAttr("x"), NoneAttr())
    assert [use.operation for use in a.uses] == [second, first]
    assert module.body.block.last_op is main
    block_ops = list(main.body.block.ops)
    assert all(op.parent is main.body.block for op in block_ops)
    assert list(reversed(main.body.block.ops)) == block_ops[::-1]


def test_templates_make_what_the_general_parser_makes() -> None:
    """An op made from a template equals one made by xDSL's own `create`."""
    line = (
        "stablehlo.custom_call @x(%a, %b) {n = 1 : i32} : (tensor<f32>, tensor<i1>) -> tensor<i8>"
    )
    text = f"func.func @f(%a: tensor<f32>, %b: tensor<i1>) {{\n  %0 = {line}\n  %1 = {line}\n  return\n}}"
    first, second = ops(read_module(text), "stablehlo.custom_call")
    assert type(first) is type(second)
    for what in ("operands", "properties", "attributes", "regions", "location", "result_types"):
        assert getattr(first, what) == getattr(second, what), what
    assert vars(first).keys() <= vars(second).keys() | {"_successors", "_successor_uses", "regions"}
    second.detach()
    second.erase()


# --- locations ----------------------------------------------------------------------------------


def test_locations_of_every_kind(reprinter: Any) -> None:
    text = """
#loc1 = loc("model.py":1:2)
module {
  func.func @f(%a: tensor<f32> loc("x['a']")) {
    %0 = stablehlo.abs %a : tensor<f32> loc("scope/abs"(#loc1))
    %1 = stablehlo.abs %0 : tensor<f32> loc(callsite(#loc1 at "g"("m.py":3:4)))
    %2 = stablehlo.abs %1 : tensor<f32> loc(fused<"m">[#loc1, unknown])
    %3 = stablehlo.abs %2 : tensor<f32> loc("m.py":5:6 to :9)
    %4 = stablehlo.abs %3 : tensor<f32> loc("m.py":5:6 to 7:8)
    %5 = stablehlo.abs %4 : tensor<f32> loc(#loc2)
    return loc(unknown)
  } loc(unknown)
} loc(unknown)
#loc2 = loc("late"(#loc1))
"""
    module = read_module(text)
    want = reprinter.generic(text, places=True)
    for pretty in (False, True):
        ours = print_module(module, pretty=pretty, locations=True)
        assert reprinter.generic(ours, places=True) == want
    named, _, _, line, both, late = [op.location for op in ops(module, "stablehlo.abs")]
    assert isinstance(named, NameLoc) and isinstance(named.location, FileLineColLoc)
    ends = range_ends(line)
    assert ends is not None and (ends[1].line.data, ends[1].column.data) == (5, 9)
    ends = range_ends(both)
    assert ends is not None and (ends[1].line.data, ends[1].column.data) == (7, 8)
    assert isinstance(late, NameLoc) and late.desc.data == "late"


# --- faults -------------------------------------------------------------------------------------

FAULTS = {
    "undefined value": (
        "func.func @f() {\n  return %x : i32\n}",
        "2:10",
        "undefined value, got: %x",
    ),
    "type of a use": (
        "func.func @f(%a: tensor<2xf32>) {\n  return %a : tensor<3xf32>\n}",
        "2:10",
        "%a has type tensor<2xf32>, but is used with type tensor<3xf32>",
    ),
    "defined twice": (
        "func.func @f(%a: i32) {\n  %a = stablehlo.constant dense<1> : tensor<i32>\n  return\n}",
        "2:3",
        "value is defined twice, got: %a",
    ),
    "used before": (
        "func.func @f() {\n  %0 = stablehlo.abs %1 : tensor<f32>\n"
        "  %1 = stablehlo.abs %0 : tensor<f32>\n  return\n}",
        "2:22",
        "value is used before its definition, got: %1",
    ),
    "used outside": (
        'func.func @f() {\n  "a.b"() ({\n    %0 = "a.c"() : () -> i32\n    "a.d"() : () -> ()\n  })'
        ' : () -> ()\n  "a.e"(%0) : (i32) -> ()\n  return\n}',
        "6:9",
        "undefined value, got: %0",
    ),
    "unknown op": ('"stablehlo.ad"() : () -> ()', "1:1", "unknown op, got: stablehlo.ad"),
    "unknown attribute": (
        '"a.b"() {x = #stablehlo.nope<1>} : () -> ()',
        "1:14",
        "unknown attribute or type, got: stablehlo.nope",
    ),
    "results": (
        '%0:2 = "a.b"() : () -> i32',
        "1:1",
        "op has 1 results, but names are given for: 2",
    ),
    "operand types": (
        '"a.b"() : (i32) -> ()',
        "1:11",
        "op has 0 operands, but types are given for: 1",
    ),
    "alias cycle": (
        '#loc1 = loc("a"(#loc2))\n#loc2 = loc("b"(#loc1))\n"a.b"() : () -> () loc(#loc1)',
        "1:1",
        "alias is defined by itself, got: #loc1",
    ),
    "alias twice": ("#a = 1\n#a = 2", "2:1", "alias is defined twice, got: #a"),
    "open region": ("module {\n", "2:1", "expected '}' at the end of a region, got: end of text"),
    "attribute twice": ('"a.b"() {x, x} : () -> ()', "1:13", "attribute is given twice, got: x"),
    "block": (
        '"a.b"() ({\n^a:\n  "c.d"()[^x] : () -> ()\n}) : () -> ()',
        "3:11",
        "undefined block, got: ^x",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_say_where_and_what(reprinter: Any, name: str) -> None:
    text, place, message = FAULTS[name]
    with pytest.raises(child.Rejected):
        reprinter.generic(text, unregistered=True)
    with pytest.raises(ReadError) as caught:
        read_module(text, "m.mlir")
    span = caught.value.span
    assert span is not None
    assert (f"{span.line}:{span.column}", caught.value.message) == (place, message)
    assert str(caught.value).startswith(f"m.mlir:{place}: error: {message}")


def test_an_unknown_op_brings_the_nearest_name() -> None:
    with pytest.raises(ReadError, match=r"did you mean 'stablehlo\.transpose'"):
        read_module('"stablehlo.transpse"() : () -> ()')


def test_verification_says_where() -> None:
    text = """module {
  func.func @f(%a: tensor<2xf32>, %c: tensor<f32>) {
    %0 = stablehlo.add %a, %a : tensor<2xf32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    return
  }
}"""
    module = read_module(text, "m.mlir")
    with pytest.raises(ReadError, match="dimensions") as caught:
        verify_module(module, text, "m.mlir")
    assert caught.value.span is not None
    assert caught.value.span.line == 4


def test_verification_knows_what_must_have_run() -> None:
    text = """func.func @f(%p: i1) -> i32 {
  cf.cond_br %p, ^a, ^b
^a:
  %0 = "x.y"() : () -> i32
  cf.br ^b
^b:
  return %0 : i32
}"""
    module = read_module(text)
    with pytest.raises(ReadError, match="need not have been computed"):
        verify_module(module, text)


DEEP = 50_000
HOSTILE = {
    "arrays": '"a.b"() {x = ' + "[" * DEEP + "]" * DEEP + "} : () -> ()",
    "open arrays": '"a.b"() {x = ' + "[" * DEEP,
    "dictionaries": '"a.b"() {x = ' + "{a = " * DEEP,
    "types": '"a.b"() {x = ' + "tuple<" * DEEP,
    "functions": '"a.b"() {x = ' + "(" * DEEP,
    "regions": '"a.b"() ({' * DEEP,
    "modules": "module {" * DEEP,
    "locations": '"a.b"() : () -> () loc(' + "callsite(" * DEEP,
    "aliases": "\n".join(f'#loc{i} = loc("a"(#loc{i + 1}))' for i in range(DEEP))
    + f'\n#loc{DEEP} = loc(unknown)\n"a.b"() : () -> () loc(#loc0)',
    "brackets": '"a.b"() {x = #foo<' + "<" * DEEP,
    "list for a billion": "%0 = stablehlo.constant dense<[0.0, 1.0]> : tensor<100000x100000xf32>",
    "blob for a billion": '%0 = stablehlo.constant dense<"0x00FF"> : tensor<100000x100000xi1>',
    "long integer": '"a.b"() {x = ' + "9" * DEEP + "} : () -> ()",
    "many results": '%0:99999999 = "a.b"() : () -> i32',
    "wide type": '"a.b"() {x = i999999999999} : () -> ()',
    "open string": '"a.b"() {x = "' + "a" * 1_000_000,
    "half a character": 'module @"\ud800" {}',
    "nothing": "\0" * 1000,
    "percents": "%" * DEEP,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_located_errors(name: str) -> None:
    with pytest.raises(ReadError) as caught:
        read_module(HOSTILE[name], "h.mlir")
    assert caught.value.span is not None
    assert len(str(caught.value)) < 2000


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ReadError, match="not UTF-8, got byte: 0xff") as caught:
        read_module(b"module {\n  \xff\n}", "b.mlir")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 3)


def test_recursion_among_functions_reads() -> None:
    text = "func.func @f() { call @g() : () -> ()\n return }\nfunc.func @g() { call @f() : () -> ()\n return }"
    module = read_module(text)
    verify_module(module, text)
    with pytest.raises(ReadError, match="nope"):
        broken = text.replace("@g()", "@nope()", 1)
        verify_module(read_module(broken), broken)


# --- bytecode -----------------------------------------------------------------------------------

BYTECODE = """
import io, sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
with ir.Context() as context:
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    text = sys.stdin.read()
    if sys.argv[1] == "artifact":
        version = stablehlo.get_current_version()
        data = stablehlo.serialize_portable_artifact_str(text, version)
    else:
        file = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(file)
        data = file.getvalue()
sys.stdout.buffer.write(data)
"""


@pytest.mark.parametrize("kind", ["bytecode", "artifact"])
def test_bytecode_reads_as_its_text(reprinter: Any, kind: str) -> None:
    text = TEXTS["nested regions"]
    run = subprocess.run(
        [sys.executable, "-c", BYTECODE, kind], input=text.encode(), capture_output=True, check=True
    )
    module = read_module(run.stdout, "m.mlirbc")
    assert reprinter.generic(print_module(module)) == reprinter.generic(text)
    with pytest.raises(ReadError, match="bytecode"):
        read_module(run.stdout[: len(run.stdout) // 2], "m.mlirbc")


def test_bytecode_without_jax(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hidden = tmp_path / "jaxlib"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ReadError, match=r"pip install 'partir\[jax\]'"):
        read_module(b"ML\xefR\x00", "m.mlirbc")


def test_float_attributes_keep_their_bits(reprinter: Any) -> None:
    text = """
func.func @f() attributes {a = 0x7FC00001 : f32, b = 0.1 : f64, c = 1.5 : bf16, d = -0.0 : f32,
    e = 0xFFF0000000000000 : f64, g = array<f32: 1.5, 0x7F800000>, h = 5 : i4, i = true, j = 7 : index} {
  return
}"""
    module = same(reprinter, text)
    (main,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    assert isinstance(main.attributes["e"], FloatAttr)
    assert main.attributes["e"].value.data == -np.inf
