"""Which random inputs does a program deserve? Drawn by role and by use, the same for the same seed.

Integers stay below every extent that they index, what is rooted or logged is non-negative, steps and
positions are small, weights are scaled by their fan-in so that activations stay of unit size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..engine.roles import PARAM, RNG, STEP
from ..partir_dialect import stablehlo
from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.errors import PartirError

Array = np.ndarray[Any, np.dtype[Any]]

SMALL = 4
"""Below this are steps, positions, and integers that index nothing are below twice this."""

_KEEPS_INDEX = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add clamp concatenate convert broadcast_in_dim maximum minimum remainder reshape select "
        "slice subtract transpose optimization_barrier"
    ).split()
)
_KEEPS_SIGN = frozenset(
    f"stablehlo.{name}"
    for name in "add broadcast_in_dim convert divide multiply reshape slice transpose".split()
)
_WANTS_SIGN = frozenset({"stablehlo.sqrt", "stablehlo.rsqrt", "stablehlo.log"})


def draw_inputs(main: FuncOp, roles: Sequence[str], seed: int = 0) -> list[Array]:
    """One array for each argument of a prepared function; `roles` as `engine.roles` finds them.

    Raises `PartirError` for an argument that is no tensor of numbers.
    """
    return [
        _draw(argument, role, np.random.default_rng([seed, index]))
        for index, (argument, role) in enumerate(zip(main.body.block.args, roles, strict=True))
    ]


def _draw(argument: SSAValue, role: str, rng: np.random.Generator) -> Array:
    if not isinstance(argument.type, TensorType):
        raise PartirError(f"no random input can be drawn for an argument of type {argument.type}")
    type_ = cast("TensorType[Attribute]", argument.type)
    shape, dtype = type_.get_shape(), numpy_dtype(type_.element_type)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return _integers(argument, role, rng, shape, dtype)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        return np.asarray(values + 1j * rng.standard_normal(shape)).astype(dtype)
    if role == PARAM and len(shape) > 1:
        values = values * prod(shape[:-1]) ** -0.5
    if _is_rooted(argument):
        values = np.abs(values)
    return np.asarray(values).astype(dtype)


def _integers(
    argument: SSAValue,
    role: str,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    if role == RNG:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    bound = index_bound(argument)
    if role == STEP or (not shape and bound is not None):
        bound = min(bound or SMALL, SMALL)
    return np.asarray(rng.integers(0, bound or 2 * SMALL, shape)).astype(dtype)


# --- by use -------------------------------------------------------------------------------------


def index_bound(argument: SSAValue) -> int | None:
    """The smallest extent that the argument indexes: of a gather or scatter, a dynamic slice, or an
    iota that it is compared with (a one-hot); None if it indexes nothing."""
    bounds: list[int] = []
    for op, position in _reached(argument, _KEEPS_INDEX):
        extents = _EXTENTS.get(op.name)
        if extents is not None:
            bounds.extend(extents(op, position))
    return min(bounds, default=None)


def _is_rooted(argument: SSAValue) -> bool:
    """Whether a root or logarithm of it is taken, be it after a moving average."""
    for op, position in _reached(argument, _KEEPS_SIGN):
        if op.name in _WANTS_SIGN or (
            op.name == "stablehlo.batch_norm_inference" and position == 4
        ):
            return True
    return False


def _reached(start: SSAValue, through: frozenset[str]) -> Iterator[tuple[Operation, int]]:
    """The uses of a value and of what ops in `through` make of it, into loops as well."""
    seen = {start}
    frontier = [start]
    while frontier:
        value = frontier.pop()
        for use in value.uses:
            op = use.operation
            yield op, use.index
            following: Sequence[SSAValue] = ()
            if op.name in through:
                following = op.results
            elif op.name == "stablehlo.while":
                following = [region.block.args[use.index] for region in op.regions]
            for result in following:
                if result not in seen:
                    seen.add(result)
                    frontier.append(result)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _gather(op: Operation, position: int) -> list[int]:
    assert isinstance(op, stablehlo.GatherOp)
    shape = _shape(op.operand)
    return [shape[d] for d in op.dimension_numbers.start_index_map] if position == 1 else []


def _scatter(op: Operation, position: int) -> list[int]:
    assert isinstance(op, stablehlo.ScatterOp)
    if position != len(op.inputs):
        return []
    shape = _shape(op.inputs[0])
    return [shape[d] for d in op.scatter_dimension_numbers.scatter_dims_to_operand_dims]


def _starts(first: int) -> Callable[[Operation, int], list[int]]:
    """A dynamic slice whose start indices are the operands from `first` on."""

    def extents(op: Operation, position: int) -> list[int]:
        shape = _shape(op.operands[0])
        return [shape[position - first]] if position >= first else []

    return extents


def _compare(op: Operation, position: int) -> list[int]:
    value = op.operands[1 - position]
    while isinstance(value.owner, Operation) and value.owner.name in _KEEPS_INDEX:
        if len(value.owner.operands) != 1:
            break
        value = value.owner.operands[0]
    iota = value.owner
    if not isinstance(iota, stablehlo.IotaOp):
        return []
    return [_shape(value)[iota.iota_dimension.value.data]]


_EXTENTS: dict[str, Callable[[Operation, int], list[int]]] = {
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.dynamic_slice": _starts(1),
    "stablehlo.dynamic_update_slice": _starts(2),
    "stablehlo.compare": _compare,
}
