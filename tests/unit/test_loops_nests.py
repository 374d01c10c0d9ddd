"""Loops and nests say the same: there and back is the identity, and both compute what the op does.

Every op kind that has a rule is taken from the table of rules (`test_rules.mlir`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from partir.interp import has_meaning, run
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.partir import LoopOp
from partir.partir_dialect.partir_attributes import MeshAttr, NestAttr, NestEntry
from partir.partir_dialect.partir_types import CARRIES, FORM, MESH, NEST
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import Kind, Rule, rule_of
from partir.passes.iterations import Rests, choose_form
from partir.passes.loops import loops
from partir.passes.nest_form import add_empty_nests, placed_blocks, verify_nests
from partir.passes.nests import nests

Array = np.ndarray[Any, np.dtype[Any]]

TABLE = Path(__file__).with_name("test_rules.mlir")
NO_NUMBERS = {"custom_call_erf", "chlo_broadcast_add_dims"}
"""Functions that the interpreter cannot run, though it knows their op."""
MESH_3X2 = Mesh(batch=3, model=2)  # most tiles are uneven


@cache
def functions() -> dict[str, str]:
    """Function name -> a module text that holds it alone."""
    module = read_module(TABLE.read_text(encoding="utf-8"), str(TABLE))
    texts: dict[str, str] = {}
    for func in module.ops:
        assert isinstance(func, FuncOp)
        func.properties.pop("sym_visibility", None)
        texts[func.sym_name.data] = print_module(ModuleOp([func.clone()]))
    return texts


def open_factors(op: Operation, rule: Rule) -> list[int]:
    """The factors that an axis may tile."""
    return [
        f
        for f, factor in enumerate(rule.factors)
        if factor.kind is not Kind.BLOCKED
        and (factor.kind is not Kind.SPECIAL or factor.rewrite is not None)
    ]


def writable(op: Operation, entries: list[NestEntry], mesh: Mesh) -> list[NestEntry]:
    """The entries of which the tiles are slices, given those before them."""
    rule = rule_of(op)
    rests = Rests(rule)
    kept: list[NestEntry] = []
    for entry in entries:
        if entry.factor is not None:
            size = mesh.size(entry.axis)
            form = choose_form(op, rule, entry.factor, rests, size)
            if form is None:
                continue
            rests.take(form, entry.factor, size)
        kept.append(entry)
    return kept


def in_nest_form(text: str, mesh: Mesh) -> ModuleOp:
    module = read_module(text)
    module.attributes[MESH] = MeshAttr(mesh)
    add_empty_nests(module)
    return module


def placed_ops(module: ModuleOp) -> Iterator[Operation]:
    for _, ops in placed_blocks(module):
        yield from ops


def draw_nests(module: ModuleOp, mesh: Mesh, seed: int) -> int:
    """Gives every op a random nest that loops can say; how many entries are along factors."""
    rng = random.Random(seed)
    count = 0
    for op in placed_ops(module):
        factors = open_factors(op, rule_of(op))
        axes = rng.sample(mesh.names, len(mesh.names))
        entries = [
            NestEntry(axis, rng.choice(factors)) if factors and rng.random() < 0.9 else None
            for axis in axes
        ]
        drawn = [
            entry or NestEntry(axis)
            for axis, entry in zip(axes, entries, strict=True)
            if entry is not None or rng.random() < 0.3
        ]
        kept = writable(op, drawn, mesh)
        count += sum(entry.factor is not None for entry in kept)
        op.attributes[NEST] = NestAttr(kept)
    return count


def there_and_back(module: ModuleOp) -> ModuleOp:
    """Asserts that loops and nests are inverse to each other; the module in loop form."""
    verify_nests(module)
    before = print_module(module, locations=True)
    loops(module)
    module.verify()
    assert FORM not in module.attributes
    middle = print_module(module, locations=True)
    in_loops = module.clone()
    nests(module)
    module.verify()
    assert print_module(module, locations=True) == before
    loops(module)
    assert print_module(module, locations=True) == middle
    return in_loops


def inputs(module: ModuleOp, seed: int) -> list[Array]:
    """Small whole numbers of every type, so that sums are exact in any order."""
    from partir.partir_dialect.dtypes import numpy_dtype

    rng = np.random.default_rng(seed)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    drawn: list[Array] = []
    for type_ in func.function_type.inputs:
        dtype = numpy_dtype(type_.get_element_type())  # type: ignore[attr-defined]
        numbers = rng.integers(0, 2, type_.get_shape())  # type: ignore[attr-defined]
        if dtype.kind in "fcV":
            numbers = numbers * 2 - 1 + rng.integers(0, 4, numbers.shape)
        drawn.append(numbers.astype(dtype))
    return drawn


def as_main(module: ModuleOp) -> ModuleOp:
    from xdsl.dialects.builtin import StringAttr

    copy = module.clone()
    func = next(op for op in copy.ops if isinstance(op, FuncOp))
    func.properties["sym_name"] = StringAttr("main")
    return copy


@pytest.mark.parametrize("name", sorted(functions()))
def test_every_factor_of_every_op(name: str) -> None:
    """One loop at a time, uneven and even: there, back, and the same numbers."""
    text = functions()[name]
    whole = in_nest_form(text, MESH_3X2)
    (tested, *_) = [op for op in placed_ops(whole)][::-1]
    runs = name not in NO_NUMBERS and all(has_meaning(op.name) for op in placed_ops(whole))
    for axis in MESH_3X2.names:
        for factor in open_factors(tested, rule_of(tested)):
            module = in_nest_form(text, MESH_3X2)
            (op, *_) = [op for op in placed_ops(module)][::-1]
            entries = writable(op, [NestEntry(axis, factor)], MESH_3X2)
            op.attributes[NEST] = NestAttr(entries)
            looped = there_and_back(module)
            assert sum(isinstance(op, LoopOp) for op in looped.walk()) == len(entries)
            if runs and entries:
                assert_same_numbers(whole, looped)


def assert_same_numbers(whole: ModuleOp, looped: ModuleOp) -> None:
    arrays = inputs(whole, seed=7)
    with np.errstate(all="ignore"):
        wanted = run(as_main(whole), arrays)
        given = run(as_main(looped), arrays)
    for expected, actual in zip(wanted, given, strict=True):
        assert expected.dtype == actual.dtype
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            actual.astype(wide), expected.astype(wide), rtol=2e-2 if expected.itemsize < 4 else 1e-5
        )


@pytest.mark.parametrize("seed", range(4))
def test_nests_of_two_axes(seed: int) -> None:
    """Both axes, in any order, on any factors (the same one too), with `any` in between."""
    entries = 0
    for text in functions().values():
        module = in_nest_form(text, MESH_3X2)
        entries += draw_nests(module, MESH_3X2, seed)
        there_and_back(module)
    assert entries > 200


MATMUL = """
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<256x8xf32>, %w: tensor<8x16xf32>) -> tensor<256x16xf32> {
    %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
      %r = partir.loop "model" [#partir.sum] (%j : !partir.range<2>) {
        %xk = partir.slice 1 %xs[%j] : tensor<64x4xf32>
        %wk = partir.slice 0 %w[%j] : tensor<4x16xf32>
        %d = stablehlo.dot_general %xk, %wk, contracting_dims = [1] x [0]
          : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
        partir.yield %d : tensor<64x16xf32>
      } : tensor<64x16xf32>
      partir.yield %r : tensor<64x16xf32>
    } : tensor<256x16xf32>
    return %y : tensor<256x16xf32>
  }
}
"""


def nests_by_kind(module: ModuleOp) -> list[tuple[str, str]]:
    """(op name, nest) of every op that has one, in order."""
    found: list[tuple[str, str]] = []
    for op in placed_ops(module):
        nest = op.attributes[NEST]
        assert isinstance(nest, NestAttr)
        found.append((op.name, ", ".join(map(str, nest.data))))
    return found


def test_the_definition_of_a_nest() -> None:
    module = read_module(MATMUL)
    x = np.arange(256 * 8, dtype=np.float32).reshape(256, 8) % 7
    w = np.arange(8 * 16, dtype=np.float32).reshape(8, 16) % 5
    np.testing.assert_array_equal(run(module, [x, w])[0], x @ w)
    nests(module)
    assert nests_by_kind(module) == [("stablehlo.dot_general", "batch: i, model: k")]
    np.testing.assert_array_equal(run(module, [x, w])[0], x @ w)


PENDING = """
module attributes {partir.mesh = #partir.mesh<"batch"=3, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<6x8xf32> {partir.nest = #partir.nest<[]>},
      %w: tensor<8x4xf32> {partir.nest = #partir.nest<[]>},
      %v: tensor<8x4xf32> {partir.nest = #partir.nest<[]>})
      -> (tensor<6x4xf32> {partir.nest = #partir.nest<[]>}) {
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      {partir.nest = #partir.nest<[A]>} : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
      {partir.nest = #partir.nest<[B]>} : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %c = stablehlo.add %a, %b {partir.nest = #partir.nest<[C]>} : tensor<6x4xf32>
    %d = stablehlo.negate %c {partir.nest = #partir.nest<[D]>} : tensor<6x4xf32>
    return %d : tensor<6x4xf32>
  }
}
"""


def pending(*entries: str) -> str:
    text = PENDING
    for letter, entry in zip("ABCD", entries, strict=True):
        text = text.replace(f"<[{letter}]>", f"<[{entry}]>")
    return text


@pytest.mark.parametrize(
    ("entries", "loop_ops"),
    [
        (("model: k", "model: k", "model: pending add", ""), [3]),
        (("model: k", "model: k", "model: pending add", "model: pending add"), [4]),
        # the add is tiled as well, inside the loop of the sum
        (("model: k", "model: k", "model: pending add, batch: i", ""), [3, 1]),
        # other orders of the same loops
        (
            ("batch: i, model: k", "model: k, batch: j", "batch: i, model: pending add", ""),
            [3, 1, 1, 1],
        ),
        # sums over two axes at once
        (
            (
                "batch: k, model: k",
                "model: k, batch: k",
                "model: pending add, batch: pending add",
                "",
            ),
            [1, 3],
        ),
        # the sum over one axis is pending longer than the other
        (
            (
                "batch: k, model: k",
                "batch: k, model: k",
                "batch: pending add, model: pending add",
                "batch: pending add",
            ),
            [2, 3],
        ),
        # no sum is shared: each op is alone
        (("model: k", "batch: k", "batch: i", "batch: i"), [1, 1, 1, 1]),
    ],
)
def test_pending_sums_share_a_loop(entries: Sequence[str], loop_ops: list[int]) -> None:
    """`loop_ops`: how many ops (in loops of their own or not) stand directly in each loop."""
    module = read_module(pending(*entries))
    looped = there_and_back(module)
    counts = [
        sum(
            not inner.name.startswith("partir.") or isinstance(inner, LoopOp)
            for inner in op.body.ops
        )
        for op in looped.walk()
        if isinstance(op, LoopOp)
    ]
    assert sorted(counts) == sorted(loop_ops)
    x = np.arange(48, dtype=np.float32).reshape(6, 8) % 7
    w = np.arange(32, dtype=np.float32).reshape(8, 4) % 5
    v = w - 3
    np.testing.assert_array_equal(run(looped, [x, w, v])[0], -(x @ w + x @ v))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (("model: k", "batch: k", "model: pending add", ""), "does not pass through operands 0"),
        (("model: k", "model: i", "model: pending add", ""), "does not pass through operands 0"),
        (("model: i", "model: i", "model: pending add", ""), "no operand brings a partial result"),
        (("model: k", "model: k", "model: pending max", ""), "does not pass through operands 0, 1"),
        (("", "", "", "model: pending add"), "no operand brings a partial result"),
    ],
)
def test_sums_that_cannot_be_pending(entries: Sequence[str], message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        loops(read_module(pending(*entries)))


def test_sums_that_overlap_are_no_loops() -> None:
    """%c needs %a and %b in one loop over batch, %d needs %c and %a in one over model."""
    text = pending(
        "batch: k, model: k", "batch: k", "batch: pending add", "model: pending add"
    ).replace("stablehlo.negate %c", "stablehlo.add %a, %c")
    module = read_module(text.replace("<[batch: k]>}", "<[model: k, batch: k]>}"))
    with pytest.raises((PassFailedException, VerifyException)):
        loops(module)


WHILE = """
module attributes {partir.mesh = #partir.mesh<"batch"=3, "model"=2>} {
  func.func @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<6x4xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.tanh %a : tensor<6x4xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<6x4xf32>
    }
    return %0#1 : tensor<6x4xf32>
  }
}
"""


def test_the_carries_of_a_loop_have_nests() -> None:
    module = read_module(WHILE)
    add_empty_nests(module)
    (loop,) = [op for op in module.walk() if op.name == "stablehlo.while"]
    loop.attributes[CARRIES] = ArrayAttr([NestAttr(), NestAttr([("batch", 0)])])
    (tanh,) = [op for op in module.walk() if op.name == "stablehlo.tanh"]
    tanh.attributes[NEST] = NestAttr([("batch", 0), ("model", 1)])
    looped = there_and_back(module)
    body = next(op for op in looped.walk() if op.name == "stablehlo.while").regions[1]
    assert sum(isinstance(op, LoopOp) for op in body.walk()) == 2
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(run(looped, [x])[0], np.tanh(np.tanh(np.tanh(x))))


@pytest.mark.parametrize("missing", ["stablehlo.while", "stablehlo.tanh", "stablehlo.compare"])
def test_a_new_op_without_a_nest_is_seen(missing: str) -> None:
    module = read_module(WHILE)
    add_empty_nests(module)
    (op,) = [op for op in module.walk() if op.name == missing]
    op.attributes.pop(CARRIES if missing == "stablehlo.while" else NEST)
    with pytest.raises(VerifyException, match=f"{missing}: nest form, but"):
        verify_nests(module)


def test_terminators_and_the_body_of_a_reduce_have_no_nest() -> None:
    module = in_nest_form(functions()["reduce_add_unknown"], MESH_3X2)
    assert [op.name for op in placed_ops(module)] == ["stablehlo.reduce"]
    assert sum(NEST in op.attributes for op in module.walk()) == 1


def test_nests_of_a_module_in_nest_form_are_left_alone() -> None:
    module = read_module(MATMUL)
    nests(module)
    before = print_module(module)
    nests(module)
    assert print_module(module) == before
