"""What verification stands on: comparison against doubles, the reference mode, drawn inputs."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partir.interp import InterpreterError, run
from partir.interp.compare import allowed, bounds, compare, not_finite
from partir.interp.inputs import draw_inputs
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]

# ------------------------------------------------------------------------- comparison


def noisy(scale: float = 1.0) -> tuple[Array, Array]:
    """A reference in doubles and what rounding made of it."""
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((40, 50))
    return reference, (reference + scale * 1e-6 * rng.standard_normal((40, 50))).astype(np.float32)


def test_rounding_like_that_of_the_global_run_is_equal() -> None:
    reference, global_ = noisy()
    other = (reference + 1e-6 * np.random.default_rng(7).standard_normal((40, 50))).astype(
        np.float32
    )
    assert compare(reference, global_, other) is None


def test_a_wrong_element_is_found_with_its_index() -> None:
    reference, global_ = noisy()
    wrong = global_.copy()
    wrong[3, 17] += 1e-3
    wrong[5, 5] += 1e-4
    found = compare(reference, global_, wrong)
    assert found is not None
    assert (found.index, found.count) == ((3, 17), 2)
    assert found.spmd == wrong[3, 17] and found.global_ == global_[3, 17]
    assert found.bound < 1e-4
    assert "at [3, 17] and 1 more" in str(found)


def test_one_flip_of_the_global_run_does_not_excuse_the_rest() -> None:
    reference, global_ = noisy()
    global_[0, 0] += 1  # a maximum that moved
    wrong = global_.copy()
    wrong[9, 9] += 1e-3
    found = compare(reference, global_, wrong)
    assert found is not None and found.index == (9, 9)
    assert compare(reference, global_, global_) is None


def test_an_exact_global_run_allows_a_few_units_of_the_largest_element() -> None:
    reference = np.array([1.0, 1000.0])
    global_ = reference.astype(np.float32)
    step = 1000 * float(np.finfo(np.float32).eps)
    assert compare(reference, global_, np.array([1 + 7 * step, 1000], np.float32)) is None
    assert compare(reference, global_, np.array([1 + 9 * step, 1000], np.float32)) is not None


def test_rtol_is_of_the_largest_element() -> None:
    reference, global_ = np.array([0.0, 100.0]), np.array([0, 100], np.float32)
    np.testing.assert_allclose(allowed(reference, global_, rtol=1e-2), [1, 1])
    assert compare(reference, global_, np.array([0.9, 100], np.float32), rtol=1e-2) is None
    assert compare(reference, global_, np.array([1.1, 100], np.float32), rtol=1e-2) is not None


def test_a_scalar_that_is_exact_by_chance_has_the_noise_of_the_other_results() -> None:
    reference, global_ = noisy(scale=1000)
    loss = np.array(6.0)
    exact = loss.astype(np.float32)
    alone = allowed(loss, exact)
    count = np.array([3], np.int32)
    _, together, none = bounds([reference, loss, count], [global_, exact, count])
    assert none is None and together is not None
    relative = np.sort(np.abs(global_ - reference), axis=None)[-3] / np.abs(reference).max()
    np.testing.assert_allclose(together, alone + 4 * 6 * relative, rtol=1e-6)
    assert compare(loss, exact, np.array(6.005, np.float32), bound=together) is None
    assert compare(loss, exact, np.array(6.2, np.float32), bound=together) is not None
    assert compare(loss, exact, np.array(6.005, np.float32)) is not None


def test_narrow_and_complex_types_use_their_own_epsilon() -> None:
    bf16 = np.array([1.0, 1.0], ml_dtypes.bfloat16)
    off = np.array([1.0, 1.0 + 7 * 2**-7], ml_dtypes.bfloat16)
    assert compare(np.ones(2), bf16, off) is None
    z = np.array([1 + 1j], np.complex64)
    assert compare(z.astype(np.complex128), z, z + np.complex64(1e-5j)) is not None
    assert compare(z.astype(np.complex128), z, z + np.complex64(5e-7j)) is None


def test_integers_and_booleans_are_equal_exactly() -> None:
    a = np.array([1, 2**53 + 1], np.int64)
    assert compare(a, a, a.copy()) is None
    found = compare(a, a, np.array([1, 2**53], np.int64))
    assert found is not None and found.index == (1,)
    flags = np.array([True, False])
    assert compare(flags, flags, ~flags) is not None


def test_infinities_and_nans_must_be_the_same() -> None:
    reference = np.array([np.inf, np.nan, -np.inf, 1])
    global_ = reference.astype(np.float32)
    assert compare(reference, global_, global_.copy()) is None
    for place, value in ((0, -np.inf), (1, 0.0), (2, 5.0), (3, np.nan)):
        other = global_.copy()
        other[place] = value
        found = compare(reference, global_, other)
        assert found is not None and found.index == (place,)
    assert not_finite(global_) == (0,)
    assert not_finite(np.ones(3, ml_dtypes.bfloat16)) is None


def test_a_wrong_shape_differs() -> None:
    assert (
        compare(np.ones((2, 3)), np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))
        is not None
    )


# ------------------------------------------------------------------------- the reference mode


def test_the_reference_mode_computes_in_doubles_and_rounds_nothing() -> None:
    text = """func.func @main(%a: tensor<3xf32>, %n: tensor<3xui32>) -> (tensor<3xf32>, tensor<3xui32>, tensor<3xui32>) {
  %0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xbf16>
  %1 = stablehlo.exponential %0 : tensor<3xbf16>
  %2 = stablehlo.convert %1 : (tensor<3xbf16>) -> tensor<3xf32>
  %3 = stablehlo.multiply %n, %n : tensor<3xui32>
  %4 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3xui32>
  return %2, %3, %4 : tensor<3xf32>, tensor<3xui32>, tensor<3xui32>
}"""
    a = np.array([0.1, -2.3, 4.567], np.float32)
    n = np.array([2**31 + 1, 7, 2**32 - 1], np.uint32)
    values, products, patterns = run(read_module(text), [a, n], reference=True)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, np.exp(a.astype(np.float64)), rtol=1e-15)
    np.testing.assert_array_equal(products, n * n)
    np.testing.assert_array_equal(patterns, a.view(np.uint32))
    (rounded, *_) = run(read_module(text), [a, n])
    assert rounded.dtype == np.float32 and np.abs(rounded - values).max() > 1e-3


# ------------------------------------------------------------------------- inputs


def drawn(arguments: str, body: str, results: str, seed: int = 0) -> list[Array]:
    text = f"func.func @main({arguments}) -> {results} {{\n{body}\n}}"
    return draw_inputs(read_module(text), seed)


GATHER = """  %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
       collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>,
       indices_are_sorted = false}> : (tensor<11x4xf32>, tensor<300x1xi32>) -> tensor<300x4xf32>
  return %0 : tensor<300x4xf32>"""


def test_indices_stay_inside_and_reach_everything() -> None:
    _, ids = drawn("%table: tensor<11x4xf32>, %ids: tensor<300x1xi32>", GATHER, "tensor<300x4xf32>")
    assert ids.dtype == np.int32
    assert set(ids.reshape(-1).tolist()) == set(range(11))


def test_the_smallest_extent_counts_also_through_arithmetic_and_calls() -> None:
    text = """module {
func.func @main(%i: tensor<200xi32>, %x: tensor<50x3xf32>, %y: tensor<9xf32>) -> (tensor<200x3xf32>, tensor<200x9xi1>) {
  %0 = func.call @rows(%x, %i) : (tensor<50x3xf32>, tensor<200xi32>) -> tensor<200x3xf32>
  %1 = stablehlo.iota dim = 1 : tensor<200x9xi32>
  %2 = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<200xi32>) -> tensor<200x9xi32>
  %3 = stablehlo.compare EQ, %2, %1, SIGNED : (tensor<200x9xi32>, tensor<200x9xi32>) -> tensor<200x9xi1>
  return %0, %3 : tensor<200x3xf32>, tensor<200x9xi1>
}
func.func private @rows(%x: tensor<50x3xf32>, %i: tensor<200xi32>) -> tensor<200x3xf32> {
  %c = stablehlo.constant dense<50> : tensor<200xi32>
  %z = stablehlo.constant dense<0> : tensor<200xi32>
  %p = stablehlo.compare LT, %i, %z, SIGNED : (tensor<200xi32>, tensor<200xi32>) -> tensor<200xi1>
  %w = stablehlo.add %i, %c : tensor<200xi32>
  %s = stablehlo.select %p, %w, %i : tensor<200xi1>, tensor<200xi32>
  %r = stablehlo.reshape %s : (tensor<200xi32>) -> tensor<200x1xi32>
  %g = "stablehlo.gather"(%x, %r) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
       start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}>
       : (tensor<50x3xf32>, tensor<200x1xi32>) -> tensor<200x3xf32>
  return %g : tensor<200x3xf32>
}
}"""
    ids = draw_inputs(read_module(text))[0]
    assert (ids.min(), ids.max()) == (0, 8)


def test_what_goes_under_a_root_is_not_negative() -> None:
    body = """  %c = stablehlo.constant dense<9.990000e-01> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<100xf32>
  %0 = stablehlo.multiply %m, %b : tensor<100xf32>
  %1 = stablehlo.multiply %g, %g : tensor<100xf32>
  %2 = stablehlo.add %0, %1 : tensor<100xf32>
  %3 = stablehlo.sqrt %2 : tensor<100xf32>
  return %3 : tensor<100xf32>"""
    moment, gradient = drawn("%m: tensor<100xf32>, %g: tensor<100xf32>", body, "tensor<100xf32>")
    assert moment.min() >= 0
    assert gradient.min() < 0 < gradient.max()


def test_names_say_what_uses_do_not() -> None:
    arguments = (
        "%a: tensor<i32> loc(\"opt['step']\"), %b: tensor<50xf32> loc(\"opt['nu']['w']\"), "
        "%c: tensor<2xui32> loc(\"key\"), %d: tensor<50xf32> loc(\"opt['mu']['w']\")"
    )
    results = "(tensor<i32>, tensor<50xf32>, tensor<2xui32>, tensor<50xf32>)"
    body = "  return %a, %b, %c, %d : tensor<i32>, tensor<50xf32>, tensor<2xui32>, tensor<50xf32>"
    step, second, key, first = drawn(arguments, body, results)
    assert 0 < step < 5
    assert second.min() >= 0 > first.min()
    assert key.max() > 1000


def test_the_seed_decides() -> None:
    draws = [
        drawn("%a: tensor<9xf32>", "  return %a : tensor<9xf32>", "tensor<9xf32>", s)[0]
        for s in (1, 1, 2)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_every_element_type_can_be_drawn() -> None:
    kinds = ["i1", "i4", "ui8", "i64", "f16", "bf16", "f8E4M3FN", "f64", "complex<f32>"]
    arguments = ", ".join(f"%a{k}: tensor<5x{kind}>" for k, kind in enumerate(kinds))
    types = ", ".join(f"tensor<5x{kind}>" for kind in kinds)
    body = f"  return {', '.join(f'%a{k}' for k in range(len(kinds)))} : {types}"
    arrays = drawn(arguments, body, f"({types})")
    text = f"func.func @main({arguments}) -> ({types}) {{\n{body}\n}}"
    results = run(read_module(text), arrays)
    assert [a.dtype for a in arrays] == [r.dtype for r in results]
    assert all(a.shape == (5,) for a in arrays)


def test_a_dynamic_shape_is_refused() -> None:
    with pytest.raises(InterpreterError, match="no input can be drawn for 'arg0'"):
        drawn("%a: tensor<?xf32>", "  return %a : tensor<?xf32>", "tensor<?xf32>")
