"""Does a device-local module run on XLA devices as it is written?"""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from partir.partir_dialect.errors import LoweringError, PartirError
from partir.partir_dialect.mesh import Mesh
from partir.runtime.xla import Executable, check_stablehlo, compile_check, run_on_xla

MESH = Mesh(batch=4, model=2)
HANDLE = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADD = """({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""


def main_of(types: str, results: str, body: str) -> str:
    return f"module {{ func.func public @main({types}) -> ({results}) {{\n{body}\n}} }}"


def groups(mesh: Mesh, axis: str) -> str:
    rows = [list(group) for group in mesh.groups([axis])]
    return f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def test_all_reduce_sums_over_the_group() -> None:
    body = f"""
    %0 = "stablehlo.all_reduce"(%a) <{{{groups(MESH, "batch")}, {HANDLE},
      use_global_device_ids}}> {ADD} : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>"""
    text = main_of("%a: tensor<3xf32>", "tensor<3xf32>", body)
    inputs = np.random.default_rng(0).integers(0, 9, (8, 3)).astype(np.float32)
    outputs = run_on_xla(text, MESH, [[x] for x in inputs])
    table = inputs.reshape(4, 2, 3)
    want = np.broadcast_to(table.sum(0), (4, 2, 3)).reshape(8, 3)
    np.testing.assert_array_equal(np.stack([o[0] for o in outputs]), want)


def test_all_gather_concatenates_in_group_order() -> None:
    body = f"""
    %0 = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {groups(MESH, "model")}, {HANDLE},
      use_global_device_ids}}> : (tensor<1x2xf32>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>"""
    text = main_of("%a: tensor<1x2xf32>", "tensor<2x2xf32>", body)
    inputs = np.arange(16, dtype=np.float32).reshape(8, 1, 2)
    outputs = run_on_xla(text, MESH, [[x] for x in inputs])
    for device, (got,) in enumerate(outputs):
        first = device // 2 * 2
        np.testing.assert_array_equal(got, inputs[first : first + 2, 0])


def test_partition_id_is_the_device_number_on_a_mesh_smaller_than_the_machine() -> None:
    text = main_of(
        "", "tensor<ui32>", "%0 = stablehlo.partition_id : tensor<ui32> return %0 : tensor<ui32>"
    )
    assert [int(o[0]) for o in run_on_xla(text, Mesh(x=3), [[]] * 3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("tensor<i64>", np.array(1 << 40, np.int64)),
        ("tensor<2xf64>", np.array([1e-300, 1.0], np.float64)),
        ("tensor<3xbf16>", np.array([1, 2, 3], ml_dtypes.bfloat16)),
        ("tensor<2xi1>", np.array([True, False])),
        ("tensor<2x0xf32>", np.zeros((2, 0), np.float32)),
        ("tensor<2xcomplex<f32>>", np.array([1j, 2], np.complex64)),
        ("tensor<2xf8E4M3FN>", np.array([1, 2], ml_dtypes.float8_e4m3fn)),
    ],
)
def test_values_pass_through_unchanged(type_: str, value: np.ndarray) -> None:
    text = main_of(f"%a: {type_}", type_, f"return %a : {type_}")
    for (got,) in run_on_xla(text, Mesh(x=2), [[value], [value]]):
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)


def test_shards_of_a_result_are_given_apart() -> None:
    text = main_of("%a: tensor<f32>", "tensor<f32>", "return %a : tensor<f32>")
    outputs = run_on_xla(text, Mesh(x=8), [[np.asarray(d, np.float32)] for d in range(8)])
    assert [float(o[0]) for o in outputs] == list(range(8))


def test_a_step_can_be_called_again_on_its_own_results() -> None:
    body = "%0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32>"
    executable = Executable(main_of("%a: tensor<2xf32>", "tensor<2xf32>", body), 2)
    arrays = executable.put([[np.ones(2, np.float32)], [np.full(2, 3, np.float32)]])
    for _ in range(3):
        arrays = executable.call(arrays)
    assert [row[0].tolist() for row in executable.get(arrays)] == [[8, 8], [24, 24]]


def test_a_module_that_stablehlo_refuses_is_a_lowering_error() -> None:
    body = "%0 = stablehlo.add %a, %a : tensor<3xf32> return %0 : tensor<3xf32>"
    with pytest.raises(LoweringError, match="StableHLO does not accept"):
        check_stablehlo(main_of("%a: tensor<2xf32>", "tensor<3xf32>", body))


def test_a_module_without_main_is_a_lowering_error() -> None:
    with pytest.raises(LoweringError, match=r"no function main, got: \['f'\]"):
        check_stablehlo("func.func @f() { return }")


def test_the_signature_is_read() -> None:
    text = main_of(
        "%a: tensor<2x3xbf16>, %b: tensor<i4>",
        "tensor<ui8>",
        "%0 = stablehlo.constant dense<1> : tensor<ui8> return %0 : tensor<ui8>",
    )
    signature = check_stablehlo(text)
    assert [(a.shape, str(a.dtype)) for a in signature.arguments] == [
        ((2, 3), "bfloat16"),
        ((), "int4"),
    ]
    assert [(r.shape, str(r.dtype)) for r in signature.results] == [((), "uint8")]


def test_more_devices_than_there_are_is_the_users_fault() -> None:
    text = main_of("", "", "return")
    with pytest.raises(PartirError, match="16 cpu devices are needed, JAX has 8"):
        compile_check(text, Mesh(x=16))


def test_an_input_of_another_shape_is_refused() -> None:
    text = main_of("%a: tensor<2xf32>", "tensor<2xf32>", "return %a : tensor<2xf32>")
    with pytest.raises(
        PartirError, match=r"argument 0 on device 1 must be float32\[2\], got: float32\[3\]"
    ):
        run_on_xla(text, Mesh(x=2), [[np.zeros(2, np.float32)], [np.zeros(3, np.float32)]])


def test_eight_devices_are_there_without_any_setting() -> None:
    code = "from partir.runtime.xla import import_jax; print(len(import_jax(8).devices('cpu')))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "8\n"
