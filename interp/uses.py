"""What is an argument used for? Its value is followed through the program to the ops that restrict
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from .attributes import element_of, integer, integers, need, shape_of, text

_LIMIT = 400  # values that are looked at for one argument

_VIEWS = {
    "stablehlo.convert",
    "stablehlo.reshape",
    "stablehlo.broadcast_in_dim",
    "stablehlo.slice",
    "stablehlo.dynamic_slice",
    "stablehlo.transpose",
    "stablehlo.reverse",
    "stablehlo.optimization_barrier",
    "partir.replicate",
    "partir.stop",
    "partir.slice",
    "sdy.sharding_constraint",
}
_INTEGER_STEPS = {
    "stablehlo.add",
    "stablehlo.subtract",
    "stablehlo.select",
    "stablehlo.clamp",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.concatenate",
    "stablehlo.pad",
}
_FLOAT_STEPS = {"stablehlo.add", "stablehlo.maximum"}
_SCALED_STEPS = {"stablehlo.multiply", "stablehlo.divide"}
_ROOTS = {"stablehlo.sqrt", "stablehlo.rsqrt", "stablehlo.log"}
_BITWISE = {"stablehlo.xor", "stablehlo.shift_right_logical", "stablehlo.rng_bit_generator"}


@dataclass
class Uses:
    """What restricts a value: extents it indexes, sizes it is contracted over, and the rest by
    name."""

    extents: set[int] = field(default_factory=set[int])
    contracted: set[int] = field(default_factory=set[int])
    contracted_left: set[int] = field(default_factory=set[int])
    not_negative: bool = False
    positive: bool = False
    definite: bool = False
    triangular: bool = False
    random: bool = False


@dataclass(frozen=True)
class _Place:
    """A value that carries the argument; `column` is where in an index vector, if known."""

    value: SSAValue
    column: int | None = None
    exact: bool = True


def uses_of(value: SSAValue, module: ModuleOp) -> Uses:
    """What restricts `value`: it is followed through views, arithmetic, calls and regions."""
    uses = Uses()
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    queue = [_Place(value)]
    seen: set[tuple[SSAValue, int | None]] = {(value, None)}
    while queue and len(seen) < _LIMIT:
        place = queue.pop()
        for use in place.value.uses:
            for following in _follow(use.operation, use.index, place, uses, functions):
                key = (following.value, following.column)
                if key not in seen:
                    seen.add(key)
                    queue.append(following)
    return uses


def _is_integer(value: SSAValue) -> bool:
    return str(element_of(value.type)).lstrip("u")[:1] == "i"


def _follow(
    op: Operation, index: int, place: _Place, uses: Uses, functions: dict[str, FuncOp]
) -> list[_Place]:
    """Notes what the op asks of its operand, and says where the value goes on."""
    _note(op, index, place, uses)
    name = op.name
    if name in ("func.call", "stablehlo.composite"):
        callee = functions.get(text(op, "callee" if name == "func.call" else "decomposition"))
        return [_Place(callee.body.block.args[index])] if callee is not None else []
    if name in ("func.return", "stablehlo.return"):
        return _outside(op, index, functions)
    if name == "stablehlo.while":
        return [_Place(region.block.args[index]) for region in op.regions]
    if name in _VIEWS:
        return [
            _Place(
                op.results[0], place.column if name == "stablehlo.convert" else None, place.exact
            )
        ]
    if _is_integer(place.value):
        return _follow_integer(op, index)
    plain = name in _FLOAT_STEPS or (name in _SCALED_STEPS and _scaled(op, index))
    return [_Place(op.results[0], exact=False)] if plain else []


def _follow_integer(op: Operation, index: int) -> list[_Place]:
    if op.name not in _INTEGER_STEPS or (op.name == "stablehlo.select" and index == 0):
        return []
    column = None
    if op.name == "stablehlo.concatenate":
        dimension = integer(op, "dimension")
        column = sum(_shape(value)[dimension] for value in op.operands[:index])
    return [_Place(op.results[0], column)]


def _outside(op: Operation, index: int, functions: dict[str, FuncOp]) -> list[_Place]:
    """Where a returned value comes out: at the calls of a function, at the results of a region."""
    parent = op.parent_op()
    if parent is None or isinstance(parent, FuncOp):
        return []
    return [_Place(parent.results[index])] if index < len(parent.results) else []


def _shape(value: SSAValue) -> tuple[int, ...]:
    return shape_of(value.type)


def _scaled(op: Operation, index: int) -> bool:
    """Whether the other operand is a broadcast scalar, so that the sign is kept."""
    other = op.operands[1 - index]
    if op.name == "stablehlo.divide" and index == 1:
        return False
    producer: Any = other.owner
    if isinstance(producer, Operation) and producer.name == "stablehlo.broadcast_in_dim":
        return prod(_shape(producer.operands[0])) == 1
    return isinstance(producer, Operation) and producer.name == "stablehlo.constant"


def _note(op: Operation, index: int, place: _Place, uses: Uses) -> None:
    name = op.name
    if name in _ROOTS:
        uses.not_negative = True
        uses.positive |= place.exact and name != "stablehlo.sqrt"
    elif name in _BITWISE:
        uses.random = True
    elif name == "stablehlo.cholesky" and place.exact:
        uses.definite = True
    elif name == "stablehlo.triangular_solve" and index == 0 and place.exact:
        uses.triangular = True
    elif name in ("stablehlo.dot_general", "stablehlo.convolution"):
        (uses.contracted if index else uses.contracted_left).add(_contracted(op, index))
    else:
        uses.extents.update(_extents(op, index, place))


def _contracted(op: Operation, index: int) -> int:
    shape = _shape(op.operands[index])
    if op.name == "stablehlo.convolution":
        output: int = need(op, "dimension_numbers").kernel_output_feature_dimension
        return max(1, prod(shape) // max(1, shape[output])) if index else 1
    d = need(op, "dot_dimension_numbers")
    dims: tuple[int, ...] = d.rhs_contracting_dimensions if index else d.lhs_contracting_dimensions
    return max(1, prod(shape[d] for d in dims))


def _extents(op: Operation, index: int, place: _Place) -> list[int]:
    """How many values an index has at an op that it indexes, or nothing."""
    extents = _INDEXING.get(op.name)
    return [] if extents is None else extents(op, index, place)


def _gather_extents(op: Operation, index: int, place: _Place) -> list[int]:
    if index != 1:
        return []
    d, sizes = need(op, "dimension_numbers"), integers(op, "slice_sizes")
    return _mapped(_shape(op.operands[0]), sizes, d.start_index_map, place)


def _slice_extents(op: Operation, index: int, place: _Place) -> list[int]:
    if index < 1:
        return []
    return [_shape(op.operands[0])[index - 1] - integers(op, "slice_sizes")[index - 1] + 1]


def _update_extents(op: Operation, index: int, place: _Place) -> list[int]:
    if index < 2:
        return []
    return [_shape(op.operands[0])[index - 2] - _shape(op.operands[1])[index - 2] + 1]


def _case_extents(op: Operation, index: int, place: _Place) -> list[int]:
    return [len(op.regions)] if index == 0 else []


def _mapped(
    shape: tuple[int, ...], sizes: tuple[int, ...], index_map: tuple[int, ...], place: _Place
) -> list[int]:
    columns = range(len(index_map)) if place.column is None else [place.column]
    return [shape[index_map[c]] - sizes[index_map[c]] + 1 for c in columns if c < len(index_map)]


def _scatter_extents(op: Operation, index: int, place: _Place) -> list[int]:
    if index != len(op.results):
        return []
    d, shape = need(op, "scatter_dimension_numbers"), _shape(op.operands[0])
    updates = _shape(op.operands[len(op.results) + 1])
    sizes = [1] * len(shape)
    absent = (*d.inserted_window_dims, *d.input_batching_dims)
    kept = [dim for dim in range(len(shape)) if dim not in absent]
    for window, dim in zip(d.update_window_dims, kept, strict=True):
        sizes[dim] = updates[window]
    return _mapped(shape, tuple(sizes), tuple(d.scatter_dims_to_operand_dims), place)


def _one_hot(op: Operation, index: int, place: _Place) -> list[int]:
    """The number of classes when an index is compared with an iota."""
    producer: Any = op.operands[1 - index].owner
    while isinstance(producer, Operation) and producer.name in _VIEWS:
        producer = producer.operands[0].owner
    iota = isinstance(producer, Operation) and producer.name == "stablehlo.iota"
    if not iota or text(op, "comparison_direction") != "EQ":
        return []
    return [_shape(producer.results[0])[integer(producer, "iota_dimension")]]


_INDEXING: dict[str, Callable[[Operation, int, _Place], list[int]]] = {
    "stablehlo.gather": _gather_extents,
    "stablehlo.scatter": _scatter_extents,
    "stablehlo.dynamic_slice": _slice_extents,
    "stablehlo.dynamic_update_slice": _update_extents,
    "stablehlo.case": _case_extents,
    "stablehlo.compare": _one_hot,
}
