"""What the rules claim, tried out: an op run in tiles equals the op run whole.

For every row of `test_rules.mlir` and every factor that needs no exchange, the op is made local
(types and attributes divided), run once for each tile, and the results are concatenated or
combined. For every row of the linearity column, f(a⊕b) = f(a)⊕f(b) is evaluated. Inputs include
indices that are out of bounds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from partir.interp import has_meaning, run
from partir.partir_dialect.constants import from_numpy
from partir.partir_dialect.dtypes import numpy_dtype
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import Dims, Factor, Kind, Rule, rule_of
from partir.partir_dialect.rules.reducers import splat_scalar

TABLE = Path(__file__).with_name("test_rules.mlir")
WITHOUT_MEANING = {
    "chlo_broadcast_add_dims",
    "chlo_ragged_dot",
    "custom_call_erf",
    "custom_call_unknown",
    "rng",
}
PLAIN_REWRITES = {None, "init_once", "convolution_groups"}

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
IDENTITY = {"add": 0, "mul": 1}


@cache
def operations() -> dict[str, Operation]:
    """Function name -> the op that makes its first result."""
    found: dict[str, Operation] = {}
    for function in read_module(TABLE.read_text(), str(TABLE)).body.block.ops:
        assert isinstance(function, FuncOp)
        last = function.body.block.last_op
        assert isinstance(last, ReturnOp)
        owner = last.operands[0].owner
        assert isinstance(owner, Operation)
        found[function.sym_name.data] = owner
    return found


def inputs_of(name: str) -> list[Any]:
    """Random operands of the op: well conditioned, indices on both sides of the bounds."""
    op = operations()[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    count = len(op.operands) // 2
    indices = {
        "stablehlo.gather": {1},
        "stablehlo.torch_index_select": {1},
        "stablehlo.scatter": {count},
        "stablehlo.dynamic_slice": set(range(1, 9)),
        "stablehlo.dynamic_update_slice": set(range(2, 9)),
    }.get(op.name, set())
    return [_input(value, rng, k in indices) for k, value in enumerate(op.operands)]


def _input(value: Any, rng: np.random.Generator, is_index: bool) -> Any:
    shape, dtype = value.type.get_shape(), numpy_dtype(value.type.element_type)
    scalar = splat_scalar(value)
    if scalar is not None:
        return np.full(shape, scalar, dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if is_index:
        return rng.integers(-2, 10, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(1, 9, shape).astype(dtype)
    array = rng.uniform(0.5, 1.5, shape) + 1j * rng.uniform(-1, 1, shape)
    if len(shape) >= 2 and shape[-1] == shape[-2] == 3:  # a matrix to be factored
        array = (array + array.swapaxes(-1, -2)) + 8 * np.eye(3)
    return array.astype(dtype) if dtype.kind == "c" else array.real.astype(dtype)


def evaluate(op: Operation, arrays: list[Any]) -> list[Any]:
    """Runs one op alone."""
    elements: list[Any] = [value.type for value in op.operands]
    types = [
        TensorType(t.element_type, array.shape) for t, array in zip(elements, arrays, strict=True)
    ]
    block = Block(arg_types=types)
    alone = op.clone(dict(zip(op.operands, block.args, strict=False)))
    for operand, argument in enumerate(block.args):
        alone.operands[operand] = argument
    block.add_ops([alone, ReturnOp(*alone.results)])
    result_types = [value.type for value in alone.results]
    main = FuncOp("main", (types, result_types), Region(block))
    return run(ModuleOp([main]), arrays)


# --- tiles --------------------------------------------------------------------------------------


def tile(array: Any, dims: Dims, sizes: list[int], factor: int, parts: int, part: int) -> Any:
    """The part-th of `parts` tiles along a factor, of all dimensions that have it."""
    for d, made_of in enumerate(dims):
        if factor in made_of:
            split = [sizes[f] for f in made_of]
            position = made_of.index(factor)
            shape = array.shape
            view = array.reshape(*shape[:d], *split, *shape[d + 1 :])
            step = split[position] // parts
            index = [slice(None)] * view.ndim
            index[d + position] = slice(part * step, (part + 1) * step)
            view = view[tuple(index)]
            array = view.reshape(*shape[:d], shape[d] // parts, *shape[d + 1 :])
    return array


def join(tiles: list[Any], dims: Dims, sizes: list[int], factor: int) -> Any:
    """The inverse of `tile`; a value without the factor is the same in all iterations."""
    for d, made_of in enumerate(dims):
        if factor in made_of:
            whole = tiles[0].shape[d] * len(tiles)
            split = [sizes[f] for f in made_of]
            position = made_of.index(factor)
            split[position] //= len(tiles)
            views = [t.reshape(*t.shape[:d], *split, *t.shape[d + 1 :]) for t in tiles]
            joined = np.concatenate(views, axis=d + position)
            return joined.reshape(*tiles[0].shape[:d], whole, *tiles[0].shape[d + 1 :])
    for other in tiles[1:]:
        np.testing.assert_array_equal(other, tiles[0])
    return tiles[0]


def localised(op: Operation, rule: Rule, factor: int, parts: int) -> Operation:
    """The op that makes one tile: result types and what attributes say of sizes, divided."""
    local = op.clone()
    made: list[int] = []
    for result, dims in zip(local.results, rule.results, strict=True):
        tensor: Any = result.type
        shape = zip(tensor.get_shape(), dims, strict=True)
        made = [n // parts if factor in made_of else n for n, made_of in shape]
        result._type = TensorType(tensor.element_type, made)
    for key in ("slice_sizes", "limit_indices"):
        if key in op.properties:
            _divide(local, key, rule.operands[0], factor, parts)
    if op.name == "stablehlo.broadcast":
        _divide(local, "broadcast_sizes", rule.results[0][:2], factor, parts)
    if rule.factors[factor].rewrite == "convolution_groups":
        for key in ("feature_group_count", "batch_group_count"):
            count: Any = op.properties[key]
            if count.value.data == rule.factors[factor].size:
                local.properties[key] = IntegerAttr(count.value.data // parts, 64)
    if op.name == "stablehlo.constant":
        splat = np.full(made, splat_scalar(op.results[0]))
        local.properties["value"] = from_numpy(splat)
    return local


def _divide(op: Operation, key: str, dims: Dims, factor: int, parts: int) -> None:
    old: Any = op.properties[key]
    sizes = [
        n // parts if factor in made_of else n
        for n, made_of in zip(old.get_values(), dims, strict=True)
    ]
    op.properties[key] = DenseArrayBase.from_list(i64, sizes)


def majors_of(rule: Rule, factor: int) -> list[int]:
    """The factors that are major to this one in some dimension, major first."""
    found: dict[int, None] = {}
    for dims in (*rule.operands, *rule.results):
        for made_of in dims:
            if factor in made_of:
                found.update(dict.fromkeys(made_of[: made_of.index(factor)]))
    return list(found)


def cases() -> Iterator[tuple[str, int]]:
    for name, op in operations().items():
        for number, factor in enumerate(rule_of(op).factors):
            if factor.kind in (Kind.PARALLEL, Kind.REDUCTION):
                yield name, number


def close(got: Any, wanted: Any) -> None:
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    if np.issubdtype(wanted.dtype, np.integer) or wanted.dtype == np.bool_:
        np.testing.assert_array_equal(got, wanted)
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        tolerance = 2e-2 if wanted.dtype.itemsize == 2 else 2e-5
        np.testing.assert_allclose(
            got.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance
        )


def smallest_divisor(size: int) -> int:
    return next(n for n in range(2, size + 1) if size % n == 0)


@pytest.mark.parametrize(("name", "number"), list(cases()))
def test_tiles_make_the_whole(name: str, number: int) -> None:
    """An axis fills products major to minor: the majors are tiled to single elements first."""
    if name in WITHOUT_MEANING:
        return
    op = operations()[name]
    rule = rule_of(op)
    factor = rule.factors[number]
    assert factor.rewrite in PLAIN_REWRITES
    inputs = inputs_of(name)
    sizes = [f.size for f in rule.factors]
    for major in majors_of(rule, number):
        parts = sizes[major]
        inputs = [
            tile(array, dims, sizes, major, parts, parts - 1)
            for array, dims in zip(inputs, rule.operands, strict=True)
        ]
        op = localised(op, rule, major, parts)
        sizes[major] = 1
    check_tiles(op, rule, number, inputs, sizes)


def check_tiles(
    op: Operation, rule: Rule, number: int, inputs: list[Any], sizes: list[int]
) -> None:
    factor = rule.factors[number]
    wanted = evaluate(op, inputs)
    parts = smallest_divisor(factor.size)
    local = localised(op, rule, number, parts)
    runs: list[list[Any]] = []
    for part in range(parts):
        tiles = [
            tile(array, dims, sizes, number, parts, part)
            for array, dims in zip(inputs, rule.operands, strict=True)
        ]
        if factor.rewrite == "init_once" and part > 0:
            tiles = without_init(op, tiles, factor)
        runs.append(evaluate(local, tiles))
    for r, dims in enumerate(rule.results):
        pieces = [one[r] for one in runs]
        if factor.kind is Kind.PARALLEL:
            close(join(pieces, dims, sizes, number), wanted[r])
        else:
            assert factor.reducer is not None
            total = pieces[0]
            for piece in pieces[1:]:
                total = COMBINE[factor.reducer](total, piece).astype(total.dtype)
            close(total, wanted[r])


def without_init(op: Operation, tiles: list[Any], factor: Factor) -> list[Any]:
    """The operands of an iteration that does not count the initial values (or the operand)."""
    assert factor.reducer is not None
    count = len(tiles) // 2
    inits = range(count, 2 * count) if op.name == "stablehlo.reduce" else range(count)
    identity = IDENTITY[factor.reducer]
    return [np.full_like(t, identity) if k in inits else t for k, t in enumerate(tiles)]


def test_every_row_but_the_named_ones_has_been_run() -> None:
    names = {name for name, _ in cases()}
    untried = {name for name in names if not has_meaning(operations()[name].name)}
    assert untried <= WITHOUT_MEANING


# --- linearity ----------------------------------------------------------------------------------


def linear_cases() -> Iterator[tuple[str, tuple[int, ...], str]]:
    """(row, the operands that are partial together, ⊕), for ⊕ that the types have."""
    for name, op in operations().items():
        for row in rule_of(op).linear:
            groups = [tuple(sorted(row.operands))] if row.joint else [(k,) for k in row.operands]
            for operands in groups:
                for reducer in sorted(row.reducers):
                    values = [op.operands[k] for k in operands] + list(op.results)
                    if all(_has(value, reducer) for value in values):
                        yield name, operands, reducer


def _has(value: Any, reducer: str) -> bool:
    dtype = numpy_dtype(value.type.element_type)
    if reducer in ("and", "or"):
        return dtype == np.bool_ or np.issubdtype(dtype, np.integer)
    return not (dtype.kind == "c" and reducer in ("max", "min"))


def _whole_numbers(array: Any, rng: np.random.Generator) -> Any:
    """Small whole numbers of the same type, whose sums every float type holds."""
    if array.dtype == np.bool_:
        return rng.integers(0, 2, array.shape).astype(np.bool_)
    numbers = rng.integers(1, 5, array.shape) * rng.choice([-1, 1], array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.integers(-4, 5, array.shape)
    return numbers.astype(array.dtype)


@pytest.mark.parametrize(("name", "operands", "reducer"), list(linear_cases()))
def test_linear(name: str, operands: tuple[int, ...], reducer: str) -> None:
    if name in WITHOUT_MEANING:
        return
    op = operations()[name]
    rng = np.random.default_rng(zlib.crc32(f"{name} {reducer}".encode()))
    combine = COMBINE[reducer]
    inputs = inputs_of(name)
    left, right, both = list(inputs), list(inputs), list(inputs)
    for k in operands:
        left[k], right[k] = (_whole_numbers(inputs[k], rng) for _ in range(2))
        both[k] = combine(left[k], right[k]).astype(inputs[k].dtype)
    results = zip(evaluate(op, left), evaluate(op, right), evaluate(op, both), strict=True)
    for one, other, wanted in results:
        close(combine(one, other).astype(wanted.dtype), wanted)


def test_padding_a_pending_sum_with_one_counts_the_one_on_every_device() -> None:
    """The counter-example that keeps `add` out of pad_one's column: four devices give four."""
    op = operations()["pad_one"]
    parts = [evaluate(op, [np.full((4, 6), 0.25, np.float32), np.float32(1.0)])[0]] * 4
    total = sum(parts[1:], parts[0])
    assert total[0, 0] == 1.0 and total[0, -1] == 4.0
    assert all("add" not in row.reducers for row in rule_of(op).linear)


def test_bf16_sums_are_exact_in_these_tests() -> None:
    numbers = np.arange(-8, 9)
    assert (numbers.astype(ml_dtypes.bfloat16).astype(int) == numbers).all()
