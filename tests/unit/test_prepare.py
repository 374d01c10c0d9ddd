"""What `prepare` keeps and what it changes, by shape of the IR and by numbers."""

from __future__ import annotations

from collections import Counter
from time import process_time

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NameLoc, StringAttr
from xdsl.utils.exceptions import PassFailedException

from partir.interp import run
from partir.partir_dialect.errors import PartirError
from partir.partir_dialect.reader import read_module
from partir.passes.generated import is_generated
from partir.passes.inline import MAX_OPS, inline_calls
from partir.passes.prepare import PreparePass, prepare


def prepared(text: str) -> ModuleOp:
    module = read_module(text)
    prepare(module)
    module.verify()
    return module


def kinds(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())


CALLS = """
func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("caller.py":1:1)
  %1 = func.call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %c : tensor<4xf32> loc("mul"("callee.py":2:3))
  return %0 : tensor<4xf32>
}
"""


def test_inlined_ops_keep_their_own_locations() -> None:
    module = prepared(CALLS)
    locations = [op.location for op in module.walk() if op.name == "stablehlo.multiply"]
    place = FileLineColLoc(StringAttr("callee.py"), IntAttr(2), IntAttr(3))
    assert locations == [NameLoc(StringAttr("mul"), place)] * 2


def test_inlining_computes_the_same() -> None:
    x = np.array([1, 2, 3, 4], np.float32)
    first, second = run(prepared(CALLS), [x])
    np.testing.assert_array_equal(first, x * [1, 2, 3, 4])
    np.testing.assert_array_equal(second, x * [1, 4, 9, 16])


def test_a_function_that_is_called_and_public_stays() -> None:
    module = prepared(CALLS.replace("private @f", "public @f"))
    assert kinds(module)["func.func"] == 2
    assert kinds(module)["func.call"] == 0


def test_a_composite_is_its_decomposition() -> None:
    module = prepared("""
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.composite "my.unit" %x {decomposition = @unit}
        : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @unit(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.negate %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    """)
    assert [n for n in kinds(module) if n.startswith("stablehlo")] == ["stablehlo.negate"]


def test_a_function_that_a_custom_call_names_stays() -> None:
    module = prepared("""
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @host(%x) {called_computations = [@body]}
        : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    """)
    assert kinds(module)["func.func"] == 2


def doubling(depth: int) -> str:
    calls = "".join(
        f"""
    func.func private @f{k}(%x: tensor<f32>) -> tensor<f32> {{
      %0 = func.call @f{k + 1}(%x) : (tensor<f32>) -> tensor<f32>
      %1 = func.call @f{k + 1}(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }}"""
        for k in range(depth)
    )
    return f"""
    func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = func.call @f0(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}{calls}
    func.func private @f{depth}(%x: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.negate %x : tensor<f32>
      return %0 : tensor<f32>
    }}"""


def test_nested_calls_are_counted_before_they_fill_the_memory() -> None:
    with pytest.raises(PartirError, match=f"more than {MAX_OPS} ops"):
        inline_calls(read_module(doubling(40)))
    assert kinds(prepared(doubling(5)))["stablehlo.negate"] == 2**5


def test_a_long_chain_of_calls_is_no_recursion() -> None:
    depth = 3000
    chain = doubling(depth).replace(
        "%1 = func.call @", "%1 = stablehlo.negate %0 : tensor<f32>\n//"
    )
    assert kinds(prepared(chain))["stablehlo.negate"] == depth + 1


def test_the_pass_fails_as_passes_do() -> None:
    text = CALLS.replace(
        "%0 = stablehlo.multiply",
        "%1 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n%0 = stablehlo.multiply",
    )
    with pytest.raises(PassFailedException, match="recursion cannot be inlined, got: a call of @f"):
        PreparePass().apply(Context(), read_module(text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("@f(%0)", "@g(%0)"), "a call needs a function with a body, got: @g"),
        (
            (
                "%1 = func.call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>",
                "%1 = func.call @f(%0) : (tensor<4xf32>) -> tensor<5xf32>",
            ),
            "the call does not fit",
        ),
    ],
)
def test_calls_that_fit_no_function(change: tuple[str, str], message: str) -> None:
    text = CALLS.replace(*change)
    if "5xf32" in text:
        text = text.replace(
            "return %0, %1 : tensor<4xf32>, tensor<4xf32>",
            "return %0, %0 : tensor<4xf32>, tensor<4xf32>",
        )
    with pytest.raises(PartirError, match=message):
        prepare(read_module(text))


MERGING = """
func.func public @main(%x: tensor<4x4xf32>, %p: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = stablehlo.tanh %x : tensor<4x4xf32>
  %b = stablehlo.tanh %x : tensor<4x4xf32>
  %0 = {first} : {types}
  %1 = {second} : {types}
  %c = stablehlo.add %0, %1 : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
"""
UNARY = "tensor<4x4xf32>"
BINARY = "tensor<4x4xf32>"


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("stablehlo.exponential %a", "stablehlo.exponential %b", 1),
        ("stablehlo.exponential %a", "stablehlo.exponential %x", 2),
        ("stablehlo.exponential %a {mhlo.note = 1 : i32}", "stablehlo.exponential %b", 2),
        ("stablehlo.subtract %a, %x", "stablehlo.subtract %b, %x", 1),
        ("stablehlo.subtract %a, %x", "stablehlo.subtract %x, %a", 2),
        ("stablehlo.optimization_barrier %a", "stablehlo.optimization_barrier %b", 2),
    ],
)
def test_merging(first: str, second: str, kept: int) -> None:
    text = MERGING.replace("{first}", first).replace("{second}", second)
    module = prepared(text.replace("{types}", UNARY))
    name = first.split(maxsplit=1)[0]
    assert kinds(module)[name] == kept


def test_regions_are_compared_by_what_they_do() -> None:
    body = """stablehlo.reduce(%a init: %c) across dimensions = [1]
      : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
      reducer(%l: tensor<f32>, %r: tensor<f32>) {
        %s = stablehlo.{op} %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }"""

    def text(*ops: str) -> str:
        lines = [f"%r{k} = {body.replace('{op}', op)}" for k, op in enumerate(ops)]
        adds = [
            f"%s{k} = stablehlo.add %r{k - 1}, %r{k} : tensor<4xf32>" for k in range(1, len(ops))
        ]
        last = f"%s{len(ops) - 1}"
        return "\n".join(
            [
                "func.func public @main(%a: tensor<4x4xf32>) -> tensor<4xf32> {",
                "%c = stablehlo.constant dense<0.0> : tensor<f32>",
                *lines,
                *adds,
                "%all = stablehlo.add %s1, " + last + " : tensor<4xf32>",
                "return %all : tensor<4xf32>",
                "}",
            ]
        )

    module = prepared(text("add", "maximum", "add", "maximum"))
    assert kinds(module)["stablehlo.reduce"] == 2


GENERATED = """
func.func public @main(%p: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %t = stablehlo.constant dense<"0xDEADBEEF"> : tensor<8xf32>
  %0 = stablehlo.multiply %x, %b : tensor<8xf32>
  %1 = "stablehlo.case"(%p) ({
    %2 = stablehlo.add %0, %b : tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }, {
    stablehlo.return %b : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %i = stablehlo.iota dim = 0 : tensor<8xf32>
  %3 = stablehlo.add %1, %i : tensor<8xf32>
  %4 = stablehlo.multiply %3, %i : tensor<8xf32>
  return %4 : tensor<8xf32>
}
""".replace('%t = stablehlo.constant dense<"0xDEADBEEF"> : tensor<8xf32>\n', "")


def test_no_two_users_share_a_generated_value() -> None:
    module = read_module(GENERATED)
    x = np.arange(8, dtype=np.float32)
    before = [run(module, [np.array(p, np.int32), x])[0] for p in (0, 1)]
    prepare(module)
    module.verify()
    made = [op for op in module.walk() if is_generated(op)]
    assert Counter(op.name for op in made) == {
        "stablehlo.constant": 3,
        "stablehlo.broadcast_in_dim": 3,
        "stablehlo.iota": 2,
    }
    assert all(op.results[0].has_one_use() for op in made)
    for op in made:  # beside its user, even in the branch of a case
        (use,) = op.results[0].uses
        assert op.parent is use.operation.parent
    after = [run(module, [np.array(p, np.int32), x])[0] for p in (0, 1)]
    np.testing.assert_array_equal(before, after)


def test_a_table_of_numbers_is_not_copied() -> None:
    numbers = ", ".join(f"{k}.0" for k in range(100))
    module = prepared(f"""
    func.func public @main(%x: tensor<100xf32>) -> tensor<100xf32> {{
      %t = stablehlo.constant dense<[{numbers}]> : tensor<100xf32>
      %0 = stablehlo.add %x, %t : tensor<100xf32>
      %1 = stablehlo.multiply %0, %t : tensor<100xf32>
      return %1 : tensor<100xf32>
    }}
    """)
    assert kinds(module)["stablehlo.constant"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "stablehlo.reshape %x : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.transpose %x, dims = [0, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.convert %x : tensor<4x4xf32>",
        "stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.slice %x [0:4, 0:4] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.concatenate %x, dim = 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.reverse %x, dims = [] : tensor<4x4xf32>",
        "stablehlo.pad %x, %c, low = [0, 0], high = [0, 0], interior = [0, 0]"
        " : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>",
    ],
)
def test_identities_go(line: str) -> None:
    assert set(kinds(prepared(identity_program(line)))) == {
        "builtin.module",
        "func.func",
        "func.return",
    }


@pytest.mark.parametrize(
    "line",
    [
        "stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.reverse %x, dims = [0] : tensor<4x4xf32>",
        "stablehlo.pad %x, %c, low = [1, 0], high = [-1, 0], interior = [0, 0]"
        " : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>",
        "stablehlo.reduce_precision %x, format = e5m10 : tensor<4x4xf32>",
    ],
)
def test_what_looks_like_an_identity_stays(line: str) -> None:
    assert kinds(prepared(identity_program(line)))[line.split(maxsplit=1)[0]] == 1


def identity_program(line: str) -> str:
    return f"""
    func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = {line}
      return %0 : tensor<4x4xf32>
    }}
    """


def test_an_unused_loop_goes_unless_its_body_has_an_effect() -> None:
    def loop(effect: str) -> str:
        return f"""
        func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
          %0 = stablehlo.while(%i = %x) : tensor<i32>
          cond {{
            %c = stablehlo.constant dense<3> : tensor<i32>
            %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }} do {{
            {effect}
            %1 = stablehlo.add %i, %i : tensor<i32>
            stablehlo.return %1 : tensor<i32>
          }}
          return %x : tensor<i32>
        }}"""

    quiet = prepared(loop(""))
    loud = prepared(
        loop("stablehlo.custom_call @print(%i) {has_side_effect = true} : (tensor<i32>) -> ()")
    )
    assert kinds(quiet)["stablehlo.while"] == 0
    assert kinds(loud)["stablehlo.while"] == 1


def test_twenty_thousand_ops_take_a_few_seconds_at_most() -> None:
    lines = "\n".join(
        f"%{k} = stablehlo.add %{k - 1}, %c : tensor<4xf32>"
        if k % 2
        else f"%{k} = func.call @f(%{k - 1}) : (tensor<4xf32>) -> tensor<4xf32>"
        for k in range(1, 10_001)
    )
    module = read_module(f"""
    func.func public @main(%0: tensor<4xf32>) -> tensor<4xf32> {{
      %c = stablehlo.constant dense<1.0> : tensor<4xf32>
      {lines}
      return %10000 : tensor<4xf32>
    }}
    func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.tanh %x : tensor<4xf32>
      %1 = stablehlo.tanh %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    }}
    """)
    start = process_time()
    prepare(module)
    assert process_time() - start < 8  # about 0.6 s when the machine has nothing else to do
    assert kinds(module)["stablehlo.tanh"] == 10_000


def test_an_empty_constant_and_a_function_of_several_blocks_are_left_alone() -> None:
    module = prepared("""
    func.func public @main(%x: tensor<0xf32>) -> tensor<0xf32> {
      %c = stablehlo.constant dense<> : tensor<0xf32>
      %0 = stablehlo.add %x, %c : tensor<0xf32>
      return %0 : tensor<0xf32>
    }
    func.func public @blocks(%x: tensor<f32>) -> tensor<f32> {
      "cf.br"(%x)[^bb1] : (tensor<f32>) -> ()
    ^bb1(%y: tensor<f32>):
      return %y : tensor<f32>
    }
    """)
    assert kinds(module)["stablehlo.constant"] == 1
    assert kinds(module)["func.return"] == 2


@pytest.mark.parametrize("name", ["sdy.sharding", "mhlo.sharding", "partir.nest"])
def test_an_identity_that_says_where_its_value_is_stays(name: str) -> None:
    values = {
        "sdy.sharding": '#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>',
        "mhlo.sharding": '"{replicated}"',
        "partir.nest": "#partir.nest<[x: i]>",
    }
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
      %0 = stablehlo.reshape %x {{{name} = {values[name]}}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      return %0 : tensor<4x4xf32>
    }}
    """
    assert kinds(prepared(text))["stablehlo.reshape"] == 1
