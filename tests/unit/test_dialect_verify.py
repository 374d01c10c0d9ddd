"""Are ops accepted and refused as MLIR does it, with a message that ends in the value?

Every line of `SOUND` is changed in every number and type, one at a time; for each neighbour
jaxlib's verifier (in a child process, which some inputs kill) is asked for its verdict.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from partir.partir_dialect.errors import ReadError
from partir.partir_dialect.reader import read_module, verify_module

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
with context:
    for text in json.load(sys.stdin):
        try:
            verdict = ir.Module.parse(text).operation.verify()
        except Exception as error:
            verdict = str(error)
        print(json.dumps(verdict), flush=True)
"""

ADD = """({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  })"""
LESS = """({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = "stablehlo.compare"(%l, %r) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  })"""
GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"

# The op alone; operands are arguments of the function, made from its types.
SOUND = {
    "abs": "(tensor<4xf32>) -> tensor<4xf32>",
    "abs of complex": "(tensor<4xcomplex<f32>>) -> tensor<4xf32>",
    "negate": "(tensor<4xui8>) -> tensor<4xui8>",
    "not": "(tensor<4xi1>) -> tensor<4xi1>",
    "popcnt": "(tensor<4xi32>) -> tensor<4xi32>",
    "sign": "(tensor<4xi32>) -> tensor<4xi32>",
    "floor": "(tensor<4xf32>) -> tensor<4xf32>",
    "exponential": "(tensor<?xf32>) -> tensor<4xf32>",
    "add": "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "subtract": "(tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>",
    "power": "(tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>",
    "and": "(tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>",
    "atan2": "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "shift_left": "(tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>",
    "real": "(tensor<4xcomplex<f32>>) -> tensor<4xf32>",
    "complex": "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>",
    "is_finite": "(tensor<4xf32>) -> tensor<4xi1>",
    "compare": "<{comparison_direction = #stablehlo<comparison_direction LT>}> : "
    "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
    "select": "(tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "select by one": "(tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "clamp": "(tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "convert": "(tensor<4xf32>) -> tensor<4xi32>",
    "bitcast_convert": "(tensor<4xf32>) -> tensor<4x2xi16>",
    "reduce_precision": "<{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : "
    "(tensor<4xf32>) -> tensor<4xf32>",
    "constant": "<{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>",
    "iota": "<{iota_dimension = 1 : i64}> : () -> tensor<4x3xi32>",
    "dynamic_iota": "<{iota_dimension = 1 : i64}> : (tensor<2xi64>) -> tensor<?x3xi32>",
    "broadcast_in_dim": "<{broadcast_dimensions = array<i64: 2, 0>}> : "
    "(tensor<1x4xf32>) -> tensor<4x5x6xf32>",
    "broadcast": "<{broadcast_sizes = array<i64: 2, 3>}> : (tensor<4xf32>) -> tensor<2x3x4xf32>",
    "dynamic_broadcast_in_dim": "<{broadcast_dimensions = array<i64: 1>, "
    "known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64: 0>}> : "
    "(tensor<4xf32>, tensor<2xindex>) -> tensor<?x4xf32>",
    "reshape": "(tensor<4x6xf32>) -> tensor<3x8xf32>",
    "dynamic_reshape": "(tensor<4x6xf32>, tensor<2xi32>) -> tensor<?x8xf32>",
    "transpose": "<{permutation = array<i64: 1, 2, 0>}> : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>",
    "reverse": "<{dimensions = array<i64: 0, 2>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
    "slice": "<{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 7>, "
    "strides = array<i64: 1, 2>}> : (tensor<4x8xf32>) -> tensor<2x4xf32>",
    "dynamic_slice": "<{slice_sizes = array<i64: 2, 3>}> : "
    "(tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
    "dynamic_update_slice": "(tensor<4x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) "
    "-> tensor<4x8xf32>",
    "real_dynamic_slice": "(tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) "
    "-> tensor<?x?xf32>",
    "concatenate": "<{dimension = 1 : i64}> : "
    "(tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>",
    "pad": "<{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: -1, 2>, "
    "interior_padding = array<i64: 0, 1>}> : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x7xf32>",
    "dynamic_pad": "(tensor<4x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) "
    "-> tensor<?x?xf32>",
    "get_dimension_size": "<{dimension = 1 : i64}> : (tensor<4x3xf32>) -> tensor<i32>",
    "set_dimension_size": "<{dimension = 1 : i64}> : "
    "(tensor<4x3xf32>, tensor<i32>) -> tensor<4x?xf32>",
    "dot_general": "<{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], "
    "rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], "
    "rhs_contracting_dimensions = [0]>}> : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) "
    "-> tensor<2x3x5xf32>",
    "dot": "(tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>",
    "convolution": "<{window_strides = array<i64: 2, 1>, "
    "padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>, "
    "rhs_dilation = array<i64: 2, 1>, feature_group_count = 2 : i64, batch_group_count = 1 : i64, "
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>}> : "
    "(tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x15x6xf32>",
    "fft": "<{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 4, 8>}> : "
    "(tensor<3x4x8xf32>) -> tensor<3x4x5xcomplex<f32>>",
    "cholesky": "<{lower = true}> : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>",
    "triangular_solve": "<{left_side = true, lower = true, unit_diagonal = false, "
    "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : "
    "(tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
    "batch_norm_inference": "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : "
    "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) "
    "-> tensor<2x3xf32>",
    "batch_norm_training": "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : "
    "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) "
    "-> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)",
    "batch_norm_grad": "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : "
    "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) "
    "-> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)",
    "reduce": "<{dimensions = array<i64: 0, 2>}> "
    + ADD
    + " : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>",
    "reduce_window": "<{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, "
    "base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 2>, "
    "padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> "
    + ADD
    + " : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x3xf32>",
    "select_and_scatter": "<{window_dimensions = array<i64: 1, 2>, "
    "window_strides = array<i64: 1, 2>, padding = dense<0> : tensor<2x2xi64>}> "
    + LESS[:-1]
    + ", "
    + ADD[1:]
    + " : (tensor<2x8xf32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x8xf32>",
    "map": "<{dimensions = array<i64: 0, 1>}> "
    + ADD
    + " : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
    "sort": "<{dimension = 1 : i64, is_stable = true}> "
    + LESS
    + " : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "gather": "<{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
    "collapsed_slice_dims = [0], operand_batching_dims = [2], start_indices_batching_dims = [0], "
    "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2, 1>}> : "
    "(tensor<4x5x3xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>",
    "dynamic_gather": "<{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : "
    "(tensor<4x5xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x?xf32>",
    "torch_index_select": "<{dim = 1 : i64, batch_dims = 1 : i64}> : "
    "(tensor<2x4x5xf32>, tensor<2x3xi32>) -> tensor<2x3x5xf32>",
    "scatter": "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
    "inserted_window_dims = [0], input_batching_dims = [2], scatter_indices_batching_dims = [0], "
    "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> "
    + ADD
    + " : (tensor<4x5x3xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<4x5x3xf32>",
    "all_reduce": f"<{{{GROUPS}, {CHANNEL}, use_global_device_ids}}> {ADD}"
    " : (tensor<4x8xf32>) -> tensor<4x8xf32>",
    "all_gather": f"<{{all_gather_dim = 1 : i64, {GROUPS}, {CHANNEL}, use_global_device_ids}}>"
    " : (tensor<4x8xf32>) -> tensor<4x16xf32>",
    "reduce_scatter": f"<{{scatter_dimension = 1 : i64, {GROUPS}, {CHANNEL}}}> {ADD}"
    " : (tensor<4x8xf32>) -> tensor<4x4xf32>",
    "all_to_all": "<{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64"
    f", {GROUPS}, {CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<8x4xf32>",
    "collective_permute": "<{source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : "
    "(tensor<4xf32>) -> tensor<4xf32>",
    "collective_broadcast": f"<{{{GROUPS}}}> : (tensor<4xf32>) -> tensor<4xf32>",
    "partition_id": "() -> tensor<ui32>",
    "if": """({
    "stablehlo.return"(%0) : (tensor<4xf32>) -> ()
  }, {
    "stablehlo.return"(%0) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>""",
    "case": """({
    "stablehlo.return"(%0) : (tensor<4xf32>) -> ()
  }, {
    "stablehlo.return"(%0) : (tensor<4xf32>) -> ()
  }) : (tensor<i32>) -> tensor<4xf32>""",
    "while": """({
  ^bb0(%c: tensor<i1>, %v: tensor<4xf32>):
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tensor<i1>, %v: tensor<4xf32>):
    "stablehlo.return"(%c, %v) : (tensor<i1>, tensor<4xf32>) -> ()
  }) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)""",
    "tuple": "(tensor<4xf32>, tensor<i1>) -> tuple<tensor<4xf32>, tensor<i1>>",
    "get_tuple_element": "<{index = 1 : i32}> : (tuple<tensor<4xf32>, tensor<i1>>) -> tensor<i1>",
    "optimization_barrier": "(tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<i1>)",
    "rng": "<{rng_distribution = #stablehlo<rng_distribution NORMAL>}> : "
    "(tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x8xf32>",
    "rng_bit_generator": "<{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : "
    "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)",
    "custom_call": '<{call_target_name = "f", api_version = 2 : i32, '
    "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
    "result_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = "
    "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
    "operand_tuple_indices = []>]}> : (tensor<4x8xf32>) -> tensor<4x8xf32>",
    "infeed": '<{infeed_config = "", layout = [[0, 1]]}> : '
    "(!stablehlo.token) -> (tensor<4x8xf32>, !stablehlo.token)",
    "recv": "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, "
    "is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)",
    "send": "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
    "is_host_transfer = false}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token",
    "chlo.top_k": "<{k = 3 : i64}> : (tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)",
    "chlo.erf": "(tensor<4xf32>) -> tensor<4xf32>",
    "chlo.is_inf": "(tensor<4xf32>) -> tensor<4xi1>",
    "chlo.zeta": "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "chlo.broadcast_add": "(tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>",
    "chlo.broadcast_and": "(tensor<3x1xi32>, tensor<4xi32>) -> tensor<3x4xi32>",
    "chlo.broadcast_select": "(tensor<i1>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>",
    "chlo.constant": "<{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>",
    "sdy.sharding_constraint": '<{sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {"y"}], '
    'replicated={"x":(2)2}>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>',
    "sdy.all_gather": '<{gathering_axes = #sdy<list_of_axis_ref_lists[{"x":(2)2}, {}]>, '
    'out_sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y"}]>}> : '
    "(tensor<4x8xf32>) -> tensor<4x8xf32>",
    "sdy.all_to_all": '<{params = #sdy<all_to_all_param_list[{"x"}: 0->1]>, '
    'out_sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}> : (tensor<4x8xf32>) '
    "-> tensor<4x8xf32>",
    "sdy.manual_computation": """<{in_shardings =
    #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>,
    out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}> ({
  ^bb0(%v: tensor<1x8xf32>):
    %w = "stablehlo.reshape"(%v) : (tensor<1x8xf32>) -> tensor<4x2xf32>
    "sdy.return"(%w) : (tensor<4x2xf32>) -> ()
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>""",
}
# Where we keep to the specification (or to what an op means) and MLIR's verifier is more lenient.
STRICTER = {
    "torch_index_select": "MLIR checks nothing",
    "dynamic_iota": "one size for each dimension of the result",
    "dynamic_broadcast_in_dim": "one size for each dimension of the result",
    "all_gather": "a channel handle must be positive with global device numbers",
}
CUT = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'


def module_of(name: str, line: str) -> str:
    """A module around one op, whose operand types are read from its line."""
    op = name.partition(" ")[0]
    op = op if "." in op else f"stablehlo.{op}"
    line = line if line.startswith(("<", "({")) else f": {line}"
    signature = re.search(r": \(([^()]*)\) -> ([^{}]*)$", line)
    assert signature is not None, line
    types = signature.group(1)
    operands = [t for t in re.split(r", (?=tensor|!|tuple)", types) if t]
    operands = [types] if types.startswith("tuple") else operands
    attr = f" {CUT}" if op.startswith("sdy.") else ""
    arguments = ", ".join(f"%a{i}: {t}{attr}" for i, t in enumerate(operands))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    made = signature.group(2)
    many = f":{made.count('tensor') + made.count('!')}" if made.startswith("(") else ""
    return (
        'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
        f"func.func @main({arguments}) {{\n"
        "  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
        f'  %1{many} = "{op}"({names}) {line}\n  return\n}}\n'
    )


def neighbours(line: str) -> Iterator[str]:
    """The line with one number or element type changed, in every place."""
    for match in re.finditer(r"(?<![\w.%#^])-?\d+(?=[x,\]:>) ])(?! : i)|\d+(?= : i\d)", line):
        value = int(match.group())
        for new in {value + 1, value - 1, value * 2, -1, 0} - {value}:
            yield f"{line[: match.start()]}{new}{line[match.end() :]}"
    for match in re.finditer(r"\b(f32|i32|i64|i1|ui32)\b", line):
        for new in ("f64", "i32", "i1", "index", "complex<f32>"):
            if new != match.group():
                yield f"{line[: match.start()]}{new}{line[match.end() :]}"


def verdicts(texts: list[str]) -> list[str | None]:
    """None where MLIR accepts a text, else what it says (`killed` if it died of it)."""
    out: list[str | None] = []
    while len(out) < len(texts):
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=json.dumps(texts[len(out) :]),
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        out.extend(None if line is True else str(line) for line in lines)
        if done.returncode != 0:
            out.append("killed")
    return out


def fault_of(text: str) -> str | None:
    """What we say of a text; None if it is sound."""
    try:
        verify_module(read_module(text), text)
    except ReadError as error:
        return error.message
    return None


def test_sound_ops_are_sound() -> None:
    texts = {name: module_of(name, line) for name, line in SOUND.items()}
    told = dict(zip(texts, verdicts(list(texts.values())), strict=True))
    assert {name: said for name, said in told.items() if said is not None} == {}
    faults = {name: fault_of(text) for name, text in texts.items()}
    assert {name: fault for name, fault in faults.items() if fault is not None} == {}


def test_neighbours_get_the_verdict_of_mlir() -> None:
    cases = [
        (name, module_of(name, new)) for name, line in SOUND.items() for new in neighbours(line)
    ]
    told = verdicts([text for _, text in cases])
    wrong: list[str] = []
    refused = 0
    for (name, text), said in zip(cases, told, strict=True):
        fault = fault_of(text)
        refused += fault is not None
        known = said is None and name in STRICTER
        if (fault is None) != (said is None) and said != "killed" and not known:
            wrong.append(f"{name}: MLIR {said}, we {fault}\n{text}")
    assert len(cases) > 2000
    assert refused > 1000
    assert not wrong, f"{len(wrong)} of {len(cases)}\n" + "\n".join(wrong[:20])


MESSAGES = [
    ("transpose", "<{permutation = array<i64: 0, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     "permutation must be one of 2 dimensions, got: [0, 0]"),
    ("concatenate", "<{dimension = 2 : i64}> : (tensor<4x2xf32>) -> tensor<4x2xf32>",
     "dimension must be in [0, 2), got: 2"),
    ("reshape", "(tensor<4xf32>) -> tensor<5xf32>", "result must have 4 elements, got: 5"),
    ("not", "(tensor<4xf32>) -> tensor<4xf32>",
     "element type must be one of int, pred, uint, got: tensor<4xf32>"),
    ("all_gather", f"<{{all_gather_dim = 1 : i64, {GROUPS}}}>"
     " : (tensor<4x8xf32>) -> tensor<4x15xf32>",
     "dimension 1 must be a multiple of 8, got: 15"),
    ("sdy.sharding_constraint", '<{sharding = #sdy.sharding<@mesh, [{"z"}, {}]>}> : '
     "(tensor<4x8xf32>) -> tensor<4x8xf32>", 'unknown axis name: "z"'),
    ("sdy.sharding_constraint", '<{sharding = #sdy.sharding<@other, [{"x"}, {}]>}> : '
     "(tensor<4x8xf32>) -> tensor<4x8xf32>", "unknown mesh: @other"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "line", "message"), MESSAGES)
def test_a_message_ends_in_the_value(name: str, line: str, message: str) -> None:
    fault = fault_of(module_of(name, line))
    assert fault is not None and fault.endswith(message)


ODD = (
    "tensor<*xf32>", "!stablehlo.token", "tuple<tensor<4xf32>>", "memref<4xf32>", "tensor<?x?xf32>",
    "tensor<4x!quant.uniform<i8:f32, 0.5>>", "tensor<4x!stablehlo.token>", "tensor<0xf32>",
)  # fmt: skip


def with_odd_types(line: str) -> Iterator[str]:
    """The line with each of its types (in regions too) replaced by each odd one."""
    for match in re.finditer(r"tensor<[^<>]*(?:<[^<>]*>)?>|!stablehlo.token|tuple<.*>>", line):
        for odd in ODD:
            yield f"{line[: match.start()]}{odd}{line[match.end() :]}"


def test_odd_types_are_faults_and_not_crashes() -> None:
    faults = 0
    for name, line in SOUND.items():
        for new in with_odd_types(line):
            faults += fault_of(module_of(name, new)) is not None  # raises whatever is no fault
    assert faults > 2000


def test_quantised_elements_may_differ_in_their_scale() -> None:
    """As the specification has it; jaxlib does not register the types."""
    first, second = (
        "tensor<4x!quant.uniform<i8:f32, 0.5:3>>",
        "tensor<4x!quant.uniform<i8:f32, 2.0>>",
    )
    other = "tensor<4x!quant.uniform<i16:f32, 0.5:3>>"
    assert fault_of(module_of("add", f"({first}, {second}) -> {first}")) is None
    assert fault_of(module_of("reshape", f"({first}) -> {second}")) is None
    assert fault_of(module_of("and", f"({first}, {first}) -> {first}")) is not None
    assert fault_of(module_of("add", f"({first}, {other}) -> {first}")) is not None


def test_structure_is_checked_too() -> None:
    faults = {
        '%1 = "stablehlo.add"(%0) : (tensor<4xf32>) -> tensor<4xf32>': "got: 1",
        '%1 = "stablehlo.iota"() : () -> tensor<4xf32>': "iota_dimension",
        '%1 = "stablehlo.iota"() <{iota_dimension = 0 : i32}> : () -> tensor<4xf32>': "0 : i32",
        '%1 = "stablehlo.add"(%0, %0) {sdy.sharding = 3 : i32} : '
        "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>": "got: 3 : i32",
    }
    for line, end in faults.items():
        text = (
            "func.func @main() {\n  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
            f"  {line}\n  return\n}}"
        )
        assert verdicts([text]) != [None], line
        fault = fault_of(text)
        assert fault is not None and fault.endswith(end), fault
