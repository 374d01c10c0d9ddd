"""Small programs from faults that other partitioners had: is the right behaviour ours?

`corpus/bugs/README.md` says what is right; each file is partitioned by its own annotations and run
on simulated devices, every tile against the whole program's result, and against the numbers that
the README gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType

from partir.engine.build import main_of
from partir.interp import run, run_spmd
from partir.partir_dialect.dtypes import numpy_dtype
from partir.partir_dialect.errors import ReadError
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module
from partir.passes.sharding_forms import normalise_shardings
from partir.runtime.border import head, read_border
from partir.runtime.partition import Partitioned, partition
from partir.runtime.program import read

Array = np.ndarray[Any, np.dtype[Any]]


def drawn(module: Any, values: dict[int, Any]) -> list[Array]:
    """The README's arguments: integers i, floats ((7i+3a) mod 11) - 3.5, complex (i-3)+j(i mod 3)
    of the flat index i of argument a, unless a value is given."""
    found: list[Array] = []
    for a, type_ in enumerate(main_of(module).function_type.inputs.data):
        assert isinstance(type_, TensorType)
        shape, dtype = type_.get_shape(), numpy_dtype(type_.element_type)
        i = np.arange(int(np.prod(shape)))
        if a in values:
            array = np.broadcast_to(np.asarray(values[a]), shape)
        elif dtype.kind == "c":
            array = ((i - 3) + 1j * (i % 3)).reshape(shape)
        elif dtype.kind in "iu":
            array = i.reshape(shape)
        else:
            array = (((7 * i + 3 * a) % 11) - 3.5).reshape(shape)
        found.append(array.astype(dtype))
    return found


def file_of(shared: Path, name: str) -> Path:
    (found,) = (shared / "corpus" / "bugs").glob(f"{name}_*.mlir")
    return found


def results(
    shared: Path, name: str, values: dict[int, Any] | None = None, mesh: Mesh | None = None
) -> tuple[Partitioned, list[Array]]:
    """The partitioned program and the global results, after comparing every tile with them."""
    result = partition(read(file_of(shared, name)), mesh)
    module = result.program.module()
    inputs = drawn(module, values or {})
    normalise_shardings(module, result.mesh, keep=False)
    wanted = run(module, inputs)
    spmd = read_module(result.spmd_text, name)
    border = read_border(spmd, result.mesh)
    outputs = run_spmd(spmd, result.mesh, border.scatter(inputs))
    for k, edge in enumerate(border.results):
        for device in range(result.mesh.devices):
            tile = wanted[k][edge.index(device, border.mesh)]
            got = head(outputs[device][k], tile.shape)
            if tile.dtype.kind in "fc":
                np.testing.assert_allclose(got, tile, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(got, tile)
    return result, wanted


def counts(result: Partitioned) -> dict[str, int]:
    return {kind: row["count"] for kind, row in result.plan.counts().items() if row["count"]}


@pytest.mark.parametrize(("at", "column"), [(9, 3), (-5, 0), (2, 2)])
def test_b01_a_start_past_the_end_is_clamped_first(shared: Path, at: int, column: int) -> None:
    _, (out,) = results(shared, "b01", {1: [[-1], [-2]], 2: at})
    wanted = np.arange(8).reshape(2, 4)
    wanted[:, column] = [-1, -2]
    np.testing.assert_array_equal(out, wanted)


def test_b03_one_element_a_shard(shared: Path) -> None:
    result, (out,) = results(shared, "b03")
    np.testing.assert_array_equal(out, [-3, 3, 3, -3])
    assert result.plan.values[result.plan.results[0]].shape == (1,)


def test_b04_prefix_sum_along_a_tiled_dimension(shared: Path) -> None:
    _, (out,) = results(shared, "b04", {0: 1})
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(1, 9), (4, 8)))


def test_b06_replicated_beside_tiled(shared: Path) -> None:
    _, (out,) = results(shared, "b06")
    a = (7 * np.arange(2) % 11) - 3.5
    b = ((7 * np.arange(10) + 3) % 11) - 3.5
    np.testing.assert_array_equal(out, np.concatenate([a, b]))


def test_b07_sums_scatter_before_it_is_cut(shared: Path) -> None:
    _, (out,) = results(shared, "b07", {0: [[1], [5], [1], [6]]})
    wanted = np.zeros((8, 2))
    updates = ((7 * np.arange(8) + 3) % 11 - 3.5).reshape(4, 2)
    np.add.at(wanted, [1, 5, 1, 6], updates)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(out[[1, 5, 6]], [[5, 8], [2.5, -1.5], [-2.5, 4.5]])


def test_b09_heads_that_do_not_divide(shared: Path) -> None:
    result, (out,) = results(shared, "b09")
    assert abs(float(np.abs(out.astype(np.float64)).sum()) - 16029.824) < 0.05
    assert counts(result).get("all_reduce") == 1


def test_b10_uneven_rows(shared: Path) -> None:
    result, (out,) = results(shared, "b10")
    np.testing.assert_array_equal(out, np.arange(68).reshape(17, 4))
    assert result.plan.values[result.plan.results[0]].shape == (3, 4)


def test_b11_an_axis_of_one_device(shared: Path) -> None:
    result, (out,) = results(shared, "b11")
    np.testing.assert_array_equal(out.ravel(), (7 * np.arange(32) % 11) - 3.5)
    assert result.plan.values[result.plan.results[0]].shape == (1, 1, 8)


def test_b13_one_all_reduce_over_all(shared: Path) -> None:
    result, (out,) = results(shared, "b13")
    np.testing.assert_allclose(out[0], [-47.25, 148.75, -117.25])
    assert counts(result) == {"all_reduce": 1}
    assert "dense<[[0, 1, 2, 3]]>" in result.spmd_text


def test_b14_operands_keep_their_order(shared: Path) -> None:
    _, (difference, ratio, less) = results(shared, "b14")
    i = np.arange(32).reshape(8, 4)
    p, q = (7 * i) % 11 - 3.5, (7 * i + 3) % 11 - 3.5
    np.testing.assert_array_equal(difference, p - q)
    np.testing.assert_array_equal(difference[0], [-3, -3, -3, 8])
    np.testing.assert_allclose(ratio, p / q, rtol=1e-6)
    np.testing.assert_array_equal(less, p < q)


def test_b15_a_grouped_convolution_along_its_batch(shared: Path) -> None:
    result, (out,) = results(shared, "b15")
    assert float(np.abs(out.astype(np.float64)).sum()) == 46805.0
    assert counts(result) == {}
    assert result.plan.values[result.plan.arguments[0]].shape == (1, 6, 6, 4)
    assert "feature_group_count = 2" in result.spmd_text


def test_b16_a_transformed_dimension_is_gathered(shared: Path) -> None:
    result, (out,) = results(shared, "b16")
    i = np.arange(16)
    given = ((i - 3) + 1j * (i % 3)).reshape(2, 8)
    np.testing.assert_allclose(out, np.fft.fft(given), rtol=1e-5, atol=1e-4)
    assert counts(result) == {"all_gather": 1}


def test_b19_reductions_with_locations(shared: Path) -> None:
    result, (values, _, top) = results(shared, "b19")
    m = ((7 * np.arange(60)) % 11 - 3.5).reshape(6, 10)
    np.testing.assert_array_equal(values, m.max(1))
    np.testing.assert_array_equal(top, m.max(1))
    assert counts(result).keys() <= {"all_gather"}


def test_b20_all_clauses_of_a_dot(shared: Path) -> None:
    result, (a, b, c) = results(shared, "b20")
    p = ((7 * np.arange(24)) % 11 - 3.5).reshape(2, 3, 4)
    q = ((7 * np.arange(40) + 3) % 11 - 3.5).reshape(2, 4, 5)
    u, v = (7 * np.arange(3) + 6) % 11 - 3.5, (7 * np.arange(5) + 9) % 11 - 3.5
    np.testing.assert_allclose(a, p @ q, rtol=1e-5)
    np.testing.assert_allclose(c, p @ q, rtol=1e-2)
    np.testing.assert_allclose(b, np.outer(u, v))
    assert result.plan.values[result.plan.results[0]].shape == (1, 3, 5)
    assert counts(result) == {}


def test_b21_constants_in_hex(shared: Path) -> None:
    result, (i, f, b, d, c) = results(shared, "b21")
    np.testing.assert_array_equal(i, [1, -2])
    np.testing.assert_array_equal(f, [np.nan, -np.inf, np.inf, 1.5])
    np.testing.assert_array_equal(b, np.array([1, -2], ml_dtypes.bfloat16))
    assert np.isnan(d)
    np.testing.assert_array_equal(c, [1 - 2j, complex(np.inf, 0)])
    assert [result.plan.values[r].shape for r in result.plan.results[:2]] == [(1,), (2,)]


def test_b23_an_update_across_the_edge_of_a_shard(shared: Path) -> None:
    _, (out,) = results(shared, "b23")
    wanted = (7 * np.arange(16)) % 11 - 3.5
    wanted[6:9] = [1, 2, 3]
    np.testing.assert_array_equal(out, wanted)


def test_b25_the_exit_of_a_manual_region(shared: Path) -> None:
    result, (out,) = results(shared, "b25", mesh=Mesh(x=2))
    x = ((7 * np.arange(32)) % 11 - 3.5).reshape(4, 8)
    np.testing.assert_array_equal(out, x[:, :4] + x[:, 4:])
    assert [result.plan.values[v].shape for v in result.plan.arguments] == [(4, 4)]
    assert "stablehlo.concatenate" not in result.spmd_text
    assert counts(result) == {}


def test_b26_a_scalar_has_no_rank_three(shared: Path) -> None:
    with pytest.raises(ReadError, match="sharding must have rank 0, got: 3"):
        partition(read(file_of(shared, "b26")))


def test_b28_a_slice_along_a_whole_dimension(shared: Path) -> None:
    result, (out,) = results(shared, "b28", {1: 5})
    v = ((7 * np.arange(40)) % 11 - 3.5).reshape(4, 10)
    np.testing.assert_array_equal(out, v[:, 5:8])
    np.testing.assert_array_equal(out[0], [-1.5, 5.5, 1.5])
    assert counts(result) == {}
    assert "sizes = [2, 3]" in result.spmd_text or "array<i64: 2, 3>" in result.spmd_text


def test_every_file_has_its_test(shared: Path) -> None:
    tests = [name for name, found in globals().items() if callable(found)]
    for path in (shared / "corpus" / "bugs").glob("*.mlir"):
        number = path.name.split("_")[0]
        assert any(name.startswith(f"test_{number}_") for name in tests), path.name
