"""Are dialect attributes read and printed as MLIR does it? jaxlib prints the wanted text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from partir.partir_dialect import sdy, stablehlo
from partir.partir_dialect.chlo import RaggedDotAttr
from partir.partir_dialect.context import make_context
from partir.partir_dialect.quant import UniformType
from partir.partir_dialect.sdy_values import AllToAllParam
from partir.partir_dialect.stablehlo_structs import float_text

CONTEXT = make_context()

CHILD = """
import json, sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
for dialect in (stablehlo, sdy, chlo):
    dialect.register_dialect(context)
out = []
with context:
    for text in json.load(sys.stdin):
        is_type = text[0] not in "#["
        try:
            out.append(str(ir.Type.parse(text) if is_type else ir.Attribute.parse(text)))
        except Exception:
            out.append(None)
print(json.dumps(out))
"""


def printed_by_jaxlib(texts: Sequence[str]) -> list[str | None]:
    """What MLIR prints for each text, None where it does not read it."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def parsed(text: str) -> Attribute:
    parser = Parser(CONTEXT, text)
    return parser.parse_attribute() if text[0] in "#[" else parser.parse_type()


GOOD = """
#stablehlo.dot<>
#stablehlo.dot<rhs_contracting_dimensions=[3],lhs_contracting_dimensions=[2],lhs_batching_dimensions=[0],rhs_batching_dimensions=[1]>
#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [],>
#stablehlo.gather<>
#stablehlo.gather<index_vector_dim = 1, offset_dims = [0, 2]>
#stablehlo.gather<offset_dims = [0], index_vector_dim = 0>
#stablehlo.gather<collapsed_slice_dims = [0], operand_batching_dims=[1], start_indices_batching_dims = [2], start_index_map=[3], offset_dims = [0]>
#stablehlo.scatter<>
#stablehlo.scatter<update_window_dims=[0,1], inserted_window_dims=[2], input_batching_dims=[3], scatter_indices_batching_dims=[1], scatter_dims_to_operand_dims=[0], index_vector_dim=3>
#stablehlo.conv<[b, f]x[i, o]->[b, f]>
#stablehlo.conv<[b, 1, 0, f]x[0, 1, i, o]->[f, b, 0, 1]>
#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>
#stablehlo.channel_handle<type = 0, handle = -1>
#stablehlo<comparison_direction GT>
#stablehlo<comparison_type TOTALORDER>
#stablehlo<precision HIGHEST>
#stablehlo<fft_type IRFFT>
#stablehlo<transpose ADJOINT>
#stablehlo<rng_algorithm THREE_FRY>
#stablehlo<rng_distribution UNIFORM>
#stablehlo.result_accuracy_mode<DEFAULT>
#stablehlo.result_accuracy<atol = 1.0, rtol = 1.25e-5, ulps = 5, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
#stablehlo.result_accuracy<atol = 1.23456789e-05, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
#stablehlo.output_operand_alias<output_tuple_indices = [1, 2], operand_index = 3, operand_tuple_indices = []>
#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false>
#stablehlo.axis_ref<name = "foo", sub_axis_info = (1)2>
#stablehlo.axis_ref<name = "a\\22b">
#stablehlo.mesh_axis<name = "foo", size = 2>
#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "foo", size = 2>, <name = "b", size = 1>]>
#stablehlo.mesh<axes=[<name = "foo", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>
#stablehlo.replica_group_mesh_axes<axes = ["foo"], mesh = @mesh>
#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "foo", size = 2>]>, axes = [#stablehlo.axis_ref<name = "foo">]>
#chlo<comparison_direction GT>
#chlo<comparison_type FLOAT>
#chlo<precision HIGH>
#chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions=[1], lhs_contracting_dimensions=[2], rhs_contracting_dimensions=[3], lhs_ragged_dimensions=[1], rhs_group_dimensions=[0]>
#sdy.sharding<@mesh, [{"x"}, {?}, {"a":(1)2, ?}p3, {}]>
#sdy.sharding<@mesh, [], unreduced={"y"}, replicated={"z", "w":(2)4}>
#sdy.sharding<@"mesh 1", [{"x"}]>
#sdy.sharding<mesh<["a"=2, "b"=3], device_ids=[5, 4, 3, 2, 1, 0]>, [{"a"}, {?}]>
#sdy.sharding<mesh<[], device_ids=[3]>, []>
#sdy.mesh<["a"=2,"b"=4]>
#sdy.mesh<["a"=2], device_ids=[0, 1]>
#sdy.mesh<["a"=2], device_ids=[1, 0]>
#sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>, #sdy.sharding<@mesh, []>]>
#sdy.sharding_per_value<[]>
#sdy.op_sharding_rule<([i, jk],[])->([i,jk]) {i=2, j=3, k=4} reduction={i} need_replication={j} permutation={k}, custom>
#sdy.op_sharding_rule<([])->([])>
#sdy.op_sharding_rule<([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z], [z_1])->([zz_1z_2]) {i=2, j=2, k=2, l=2, m=2, n=2, o=2, p=2, q=2, r=2, s=2, t=2, u=2, v=2, w=2, x=2, y=2, z=2, z_1=3, z_2=4} blocked_propagation={z_2}>
#sdy<manual_axes {"a", "b"}>
#sdy<axis_ref_list{"b":(1)2, "c"}>
#sdy<list_of_axis_ref_lists[{"b", "c"}, {}]>
#sdy<all_to_all_param_list[{"b"}: 0->1, {"c"}: 1->2]>
#sdy.propagation_edges<[{step-1 = [{"a" = operand-0 -> [result-0]}]}]>
!stablehlo.token
!stablehlo.future<tensor<2xf32>, tensor<3xi1>>
tensor<?x4xf32, #stablehlo.bounds<3, ?>>
tensor<?x4xf32, #stablehlo.type_extensions<bounds = [3, ?]>>
tuple<tensor<2xf32>, !stablehlo.token>
"""  # noqa: E501

BAD = """
#stablehlo.dot<lhs_batching = [0]>
#stablehlo.dot<lhs_batching_dimensions = [0], lhs_batching_dimensions = [0]>
#stablehlo.gather<index_vector_dim = [1]>
#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, f, f]>
#stablehlo.conv<[b, 1, f]x[0, i, o]->[b, 0, f]>
#stablehlo.channel_handle<handle = 1>
#stablehlo<comparison_direction GTE>
#stablehlo<precision LOW>
#stablehlo.result_accuracy_mode<LOW>
#stablehlo.dot_algorithm<lhs_precision_type = f32>
#sdy.sharding<@mesh>
#sdy.sharding<@mesh, [{"x"}q1]>
#sdy.sharding<@mesh, [{?, "x"}]>
#sdy.op_sharding_rule<([i], [h])->([i]) {i=2, h=2}>
#sdy.op_sharding_rule<([i])->([j]) {j=2, i=2}>
#sdy<all_to_all_param_list[{"b"}: 0]>
#sdy<manual_axes{"a":(1)2}>
"""


def test_attributes_print_as_mlir_prints_them() -> None:
    texts = GOOD.strip().split("\n")
    for text, want in zip(texts, printed_by_jaxlib(texts), strict=True):
        assert want is not None, text
        got = parsed(text)
        assert str(got) == want
        assert parsed(want) == got
        assert hash(parsed(want)) == hash(got)


def test_attributes_that_mlir_does_not_read_are_faults() -> None:
    texts = BAD.strip().split("\n")
    assert printed_by_jaxlib(texts) == [None] * len(texts)
    for text in texts:
        with pytest.raises(ParseError):
            parsed(text)


def test_quantised_types_are_carried_as_text() -> None:
    text = "tensor<2x!quant.uniform<i8<-127:127>:f32:0, {1.0E-1:-3,2.0:4}>>"
    assert str(parsed(text)) == text
    element = UniformType("i8<-127:127>:f32:0, {1.0:3}")
    assert (element.storage_text, element.expressed_text) == ("i8", "f32")
    assert UniformType("ui4:f16, 0.5").storage_text == "ui4"


def test_parameters_are_python_values() -> None:
    dot = stablehlo.DotAttr.of(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    assert dot.lhs_contracting_dimensions == (1,)
    assert dot.lhs_batching_dimensions == ()
    assert dot == parsed("#stablehlo.dot<lhs_contracting_dimensions = [1], "
                         "rhs_contracting_dimensions = [0]>")  # fmt: skip
    assert dot.replaced(rhs_contracting_dimensions=[2]).rhs_contracting_dimensions == (2,)
    conv = parsed("#stablehlo.conv<[b, 1, 0, f]x[0, 1, i, o]->[f, b, 0, 1]>")
    assert isinstance(conv, stablehlo.ConvAttr)
    assert conv.input_spatial_dimensions == (2, 1)
    assert (conv.output_batch_dimension, conv.output_feature_dimension) == (1, 0)
    bounds = parsed("#stablehlo.type_extensions<bounds = [?, 3]>")
    assert isinstance(bounds, stablehlo.BoundsAttr)
    assert bounds.bounds == (None, 3)
    groups = parsed("#stablehlo.replica_group_mesh_axes<mesh = @m, axes = "
                    '["x", #stablehlo.axis_ref<name = "y">]>')  # fmt: skip
    assert isinstance(groups, stablehlo.ReplicaGroupMeshAxesAttr)
    assert groups.axis_names == ("x", "y")
    assert RaggedDotAttr.of(lhs_ragged_dimensions=(1,)).lhs_ragged_dimensions == (1,)


def test_a_wrong_or_missing_parameter_is_named() -> None:
    with pytest.raises(TypeError, match="offset"):
        stablehlo.GatherAttr.of(offset=[1])
    with pytest.raises(TypeError, match="handle"):
        stablehlo.ChannelHandleAttr.of(type=1)
    with pytest.raises(ParseError, match="offset"):
        parsed("#stablehlo.gather<offset = [1]>")


# --- whatever the values are, MLIR reads them back as they are -----------------------------

names = st.text(st.sampled_from('abxy_." \\é'), min_size=1, max_size=4)
axes = st.builds(sdy.AxisRef, names) | st.builds(
    sdy.AxisRef, names, st.integers(1, 8), st.integers(2, 8)
)
axis_lists = st.lists(axes, max_size=3).map(tuple)
dims = st.builds(sdy.DimSharding, axis_lists, st.booleans(), st.none() | st.integers(0, 9))
meshes = st.lists(st.tuples(names, st.integers(1, 4)), max_size=3, unique_by=lambda a: a[0]).map(
    tuple
)
shardings = st.builds(
    sdy.Sharding,
    names | st.builds(sdy.MeshValue, meshes),
    st.lists(dims, max_size=3).map(tuple),
    axis_lists,
    axis_lists,
)
moves = st.builds(AllToAllParam, axis_lists.filter(len), st.integers(-1, 3), st.integers(0, 3))
numbers = st.lists(st.integers(0, 20), max_size=3)
attributes = st.one_of(
    st.builds(sdy.ShardingAttr, shardings),
    st.builds(sdy.ShardingPerValueAttr, st.lists(shardings, max_size=2).map(tuple)),
    st.builds(sdy.ManualAxesAttr, st.lists(st.builds(sdy.AxisRef, names)).map(tuple)),
    st.builds(sdy.ListOfAxisRefListsAttr, st.lists(axis_lists, max_size=3).map(tuple)),
    st.builds(sdy.AllToAllParamListAttr, st.lists(moves, max_size=2).map(tuple)),
    st.builds(
        lambda *lists: stablehlo.ScatterAttr.of(
            update_window_dims=lists[0], input_batching_dims=lists[1], index_vector_dim=lists[2]
        ),
        numbers,
        numbers,
        st.integers(0, 4),
    ),
)


@settings(max_examples=300, deadline=None)
@given(attributes)
def test_what_is_printed_reads_back(attribute: Attribute) -> None:
    assert parsed(str(attribute)) == attribute


def test_what_is_printed_means_the_same_to_mlir() -> None:
    found: list[str] = []

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(attributes)
    def collect(attribute: Attribute) -> None:
        found.append(str(attribute))

    collect()
    assert len(set(found)) > 50
    assert printed_by_jaxlib(found) == found


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value(value: float) -> None:
    assert float(float_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.000000e+00"), (1.23456789e-5, "1.23456789E-5"), (0.1, "1.000000e-01")],
)
def test_floats_are_written_as_in_mlir(value: float, text: str) -> None:
    assert float_text(value) == text
