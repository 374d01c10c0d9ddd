"""The partir dialect from Python: builders, derived types, value types, text forms."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, ModuleOp, TensorType, f32, i32
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.partir import LoopOp, Partir, SliceOp, StopOp, YieldOp
from partir.partir_dialect.partir_attributes import (
    REDUCE_ACTIONS,
    Border,
    MeshAttr,
    NestAttr,
    NestEntry,
    SumAttr,
    TileAttr,
    factor_index,
    factor_letter,
)
from partir.partir_dialect.partir_spmd import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    AxisIndexOp,
    CollectivePermuteOp,
    ReduceScatterOp,
)
from partir.partir_dialect.partir_types import MESH, mesh_of
from partir.partir_dialect.rules.base import REDUCERS

MESH_4X2 = Mesh(batch=4, model=2)


def value(*shape: int) -> SSAValue:
    return test.TestOp(result_types=[TensorType(f32, shape)]).results[0]


def shape(result: SSAValue) -> tuple[int, ...]:
    assert isinstance(result.type, TensorType)
    return result.type.get_shape()


def test_every_reducer_has_an_action() -> None:
    assert set(REDUCE_ACTIONS) == REDUCERS
    assert {name: action().reducer for name, action in REDUCE_ACTIONS.items()} == {
        name: name for name in REDUCERS
    }


@given(st.integers(0, 2000))
def test_letters_name_factors(index: int) -> None:
    assert factor_index(factor_letter(index)) == index


def test_letters_begin_at_i() -> None:
    assert [factor_letter(f) for f in (0, 1, 2, 17, 18, 25, 26)] == [*"ijkzah", "i1"]
    assert factor_index("any") is None


@given(
    st.lists(st.tuples(st.integers(0, 9999), st.sampled_from(["", "batch", "a.0,model"]))),
    st.sampled_from(["", "params/layer_0/wq", "a name: with 2x3 [{x}]"]),
)
def test_border_text_reads_back(dims: list[tuple[int, str]], name: str) -> None:
    border = Border(
        tuple(size for size, _ in dims),
        "complex<f32>",
        tuple(tuple(axes.split(",")) if axes else () for _, axes in dims),
        name,
    )
    assert Border.parse(str(border)) == border


def test_border_local_shape_is_the_tile_of_one_device() -> None:
    border = Border.parse("7x6xf32 [{batch}, {model}]")
    assert border.local_shape(MESH_4X2) == (2, 3)


@pytest.mark.parametrize("text", ["7x6xf32", "7x6xf32 [{batch}]", "7xf32 [{batch}] ", "x [{}]"])
def test_border_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match="a border"):
        Border.parse(text)


def test_collectives_derive_their_types() -> None:
    x = value(8, 6)
    assert shape(AllSliceOp(x, [["batch"], []], MESH_4X2).result) == (2, 6)
    assert shape(AllSliceOp(x, [[], ["batch", "model"]], MESH_4X2).result) == (8, 1)
    assert shape(AllGatherOp(x, [["model"], ["batch"]], MESH_4X2).result) == (16, 24)
    assert shape(ReduceScatterOp(x, "add", [[], ["model"]], MESH_4X2).result) == (8, 3)
    assert shape(AllToAllOp(x, 0, 1, ["model"], MESH_4X2).result) == (16, 3)
    assert shape(AllReduceOp(x, "add", ["model"]).result) == (8, 6)
    assert shape(AxisIndexOp("batch").result) == ()
    assert CollectivePermuteOp(x, [(0, 1), (1, 0)]).pairs == ((0, 1), (1, 0))


@given(
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
    st.permutations(["batch", "model"]),
    st.integers(0, 2),
    st.integers(0, 1),
)
def test_gathering_undoes_slicing_up_to_padding(
    sizes: tuple[int, int], axes: list[str], count: int, dim: int
) -> None:
    lists: list[list[str]] = [[], []]
    lists[dim] = axes[:count]
    lists[1 - dim] = axes[count:]
    tile = AllSliceOp(value(*sizes), lists, MESH_4X2)
    whole = shape(AllGatherOp(tile.result, lists, MESH_4X2).result)
    for padded, size, names in zip(whole, sizes, lists, strict=True):
        parts = 1
        for name in names:
            parts *= MESH_4X2.size(name)
        assert size <= padded < size + parts * max(1, parts)
        assert padded % parts == 0
        assert padded == size or size % parts


def loop_program() -> ModuleOp:
    """A function that negates the rows of its argument in a loop over the batch axis."""
    type_ = TensorType(f32, (8, 6))
    entry = Block(arg_types=[type_])
    loop = LoopOp("batch", [TileAttr(0)], [type_], 4)
    tile = SliceOp(entry.args[0], 0, loop.index)
    loop.body.block.add_ops([tile, YieldOp(tile.result)])
    stop = StopOp(loop.res[0], ["model"])
    entry.add_ops([loop, stop, ReturnOp(stop.result)])
    func = FuncOp("main", ([type_], [type_]), Region(entry))
    return ModuleOp([func], attributes={MESH: MeshAttr(MESH_4X2)})


def slice_of(module: ModuleOp) -> SliceOp:
    return next(op for op in module.walk() if isinstance(op, SliceOp))


def test_a_slice_derives_its_type_from_the_loop() -> None:
    module = loop_program()
    module.verify()
    assert slice_of(module).result.type == TensorType(f32, (2, 6))
    assert slice_of(module).loop.axis_name == "batch"
    assert mesh_of(slice_of(module)) == MESH_4X2


def context() -> Context:
    made = Context()
    for dialect in (Builtin, Func, Partir, test.Test):
        made.load_dialect(dialect)
    return made


@pytest.mark.parametrize("generic", [False, True])
def test_the_stock_parser_and_printer_know_the_ops(generic: bool) -> None:
    module = loop_program()
    module.attributes["nest"] = NestAttr([("batch", 2), NestEntry("model", pending="add")])
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    again = Parser(context(), stream.getvalue()).parse_module()
    again.verify()
    assert str(again) == str(module)
    assert again.attributes["nest"] == module.attributes["nest"]


def test_the_verifier_sees_a_mesh_that_changed() -> None:
    module = loop_program()
    module.attributes[MESH] = MeshAttr(Mesh(batch=2, model=2))
    with pytest.raises(VerifyException, match="the size of its axis, batch=2, got: 4"):
        module.verify()


def test_a_sum_of_equal_iterations_is_refused() -> None:
    module = loop_program()
    loop = slice_of(module).loop
    loop.properties["actions"] = type(loop.actions)([SumAttr()])
    with pytest.raises(VerifyException, match="but the body yields"):
        module.verify()


def test_an_index_that_counts_no_loop_is_refused() -> None:
    x, number = value(8, 6), test.TestOp(result_types=[TensorType(i32, ())]).results[0]
    with pytest.raises(VerifyException, match=r"the index must be the range of a partir\.loop"):
        SliceOp(x, 0, number)
