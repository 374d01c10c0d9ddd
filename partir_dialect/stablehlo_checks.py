"""When do dimensions, windows, reducers and groups of devices fit together?

The parts of the StableHLO specification that several ops share. Every check fails through
`HloOp.fail`, with a message that ends in the value at fault; a size of -1 is not known and fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IntegerType,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from .quant import UniformType
from .stablehlo_attrs import PrecisionAttr
from .stablehlo_base import (
    DYNAMIC,
    AnyTensor,
    HloOp,
    element_of,
    is_tensor,
    kind_of,
    same_element,
    same_shape,
    same_size,
    same_type,
    shape_of,
    types_text,
    values_of,
)

# --- dimensions ----------------------------------------------------------------------------


def check_dim(op: HloOp, name: str, dim: int, rank: int) -> None:
    """Fails unless `dim` is one of `rank` dimensions."""
    if not 0 <= dim < rank:
        op.fail(f"{name} must be in [0, {rank}), got: {dim}")


def check_dims(
    op: HloOp, name: str, dims: Sequence[int], rank: int, *, ascending: bool = False
) -> None:
    """Fails unless all are different dimensions below `rank` (and in order, if asked)."""
    for dim in dims:
        if not 0 <= dim < rank:
            op.fail(f"{name} must be in [0, {rank}), got: {dim}")
    if len(set(dims)) != len(dims):
        op.fail(f"{name} must not repeat, got: {list(dims)}")
    if ascending and list(dims) != sorted(dims):
        op.fail(f"{name} must be in order, got: {list(dims)}")


def check_length(op: HloOp, name: str, values: Sequence[object], length: int) -> None:
    """Fails unless there are `length` values."""
    if len(values) != length:
        op.fail(f"{name} must have {length} value(s), got: {len(values)}")


def check_shape(op: HloOp, value: SSAValue, wanted: Sequence[int], what: str = "result") -> None:
    """Fails unless the value can have this shape."""
    if not same_shape(shape_of(value), wanted):
        op.fail(f"{what} must have shape {list(wanted)}, got: {value.type}")


def check_result(
    op: HloOp, value: SSAValue, wanted: Sequence[int], element: Attribute, what: str = "result"
) -> None:
    """Fails unless the value can have this shape and has this element type."""
    check_shape(op, value, wanted, what)
    if not same_element(element_of(value), element):
        op.fail(f"{what} must have elements of {element}, got: {value.type}")


def check_static(op: HloOp, value: SSAValue) -> None:
    """Fails unless every size of the value is known, or bounded by its type."""
    type_ = cast(AnyTensor, value.type)
    if DYNAMIC in type_.get_shape() and not hasattr(type_.encoding, "bounds"):
        op.fail(f"result must have a static shape, got: {type_}")


def check_sizes_operand(
    op: HloOp, name: str, value: SSAValue, length: int = DYNAMIC, *, static: bool = True
) -> None:
    """Fails unless the value is a list of `length` integers, one for each dimension."""
    shape = shape_of(value)
    if len(shape) != 1 or kind_of(element_of(value)) not in ("int", "uint", "index"):
        op.fail(f"{name} must be a list of integers, got: {value.type}")
    if shape[0] == DYNAMIC and static:
        op.fail(f"{name} must have a static shape, got: {value.type}")
    if not same_size(shape[0], length):
        op.fail(f"{name} must have {length} value(s), got: {value.type}")


def constant_sizes(value: SSAValue) -> tuple[int, ...] | None:
    """The numbers of a value that a `stablehlo.constant` gives, else None."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant":
        return None
    table = owner.properties.get("value")
    if not isinstance(table, DenseIntOrFPElementsAttr):
        return None
    return dense_values(cast(DenseIntOrFPElementsAttr[IntegerType], table))


def check_constant_shape(op: HloOp, sizes: SSAValue, result: SSAValue) -> None:
    """Fails unless a shape that is computed, where it is a constant, is that of the result."""
    shape = constant_sizes(sizes)
    if shape is None:
        return
    if any(size < 0 for size in shape) or not same_shape(shape, shape_of(result)):
        op.fail(f"result must have shape {list(shape)}, got: {result.type}")


def product(sizes: Iterable[int]) -> int:
    """The number of elements of a shape, or -1 if it is not known."""
    count = 1
    for size in sizes:
        if size == DYNAMIC:
            return DYNAMIC
        count *= size
    return count


# --- element types -------------------------------------------------------------------------


def bit_width(element: Attribute) -> int:
    """How many bits an element has (a complex number both parts); -1 if it has none."""
    if isinstance(element, IntegerType):
        return cast(IntegerType, element).width.data
    if isinstance(element, ComplexType):
        return 2 * bit_width(cast(ComplexType[Any], element).element_type)
    if isinstance(element, FixedBitwidthType):
        return element.bitwidth
    if isinstance(element, UniformType):
        digits = element.storage_text.lstrip("uis")
        return int(digits) if digits.isdecimal() else -1
    return -1


def promotes(narrow: Attribute, wide: Attribute) -> bool:
    """Whether numbers of the one type can be accumulated in the other."""
    if narrow == wide:
        return True
    kinds = kind_of(narrow), kind_of(wide)
    whole = {"pred", "int", "uint"}
    if isinstance(narrow, UniformType) and isinstance(wide, UniformType):
        return narrow.expressed_text == wide.expressed_text and bit_width(narrow) <= bit_width(wide)
    alike = kinds[0] == kinds[1] or (kinds[0] in whole and kinds[1] in whole)
    return alike and bit_width(narrow) <= bit_width(wide)


def check_precision(op: HloOp, config: ArrayAttr[Attribute] | None) -> None:
    """Fails unless there are at most two precisions, one for each operand."""
    if config is not None and len(config.data) > 2:
        op.fail(f"precision_config must have at most 2 values, got: {len(config.data)}")
    for word in config.data if config is not None else ():
        if not isinstance(word, PrecisionAttr):
            op.fail(f"precision_config must be of precisions, got: {word}")


# --- windows -------------------------------------------------------------------------------


def padding_pairs(op: HloOp, padding: Attribute | None, rank: int) -> tuple[tuple[int, int], ...]:
    """The `padding` property of an op as (before, after) for each of `rank` dimensions."""
    if padding is None:
        return ((0, 0),) * rank
    if not isinstance(padding, DenseIntOrFPElementsAttr):
        op.fail(f"padding must be a table of integers, got: {padding}")
    padding = cast(DenseIntOrFPElementsAttr[IntegerType], padding)
    shape = padding.get_shape()
    if tuple(shape) == (0, 2):  # as if there were none
        return ((0, 0),) * rank
    if tuple(shape) != (rank, 2):
        op.fail(f"padding must have shape [{rank}, 2], got: {list(shape)}")
    values = dense_values(padding)
    return tuple(zip(values[::2], values[1::2], strict=True))


_LARGEST_TABLE = 1 << 22


def dense_values(table: DenseIntOrFPElementsAttr[Any]) -> tuple[int, ...]:
    """All numbers of a table of integers; a splat is written out."""
    values: tuple[int, ...] = table.get_values()
    count = product(table.get_shape())
    if count > _LARGEST_TABLE:
        raise VerifyException(f"a table must have at most {_LARGEST_TABLE} numbers, got: {count}")
    return values * count if len(values) == 1 and count != 1 else values


@dataclass(frozen=True)
class Window:
    """A window that slides: for each of its dimensions size, stride, padding, dilations."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilations: tuple[int, ...]
    window_dilations: tuple[int, ...]

    def positions(self, base: Sequence[int]) -> tuple[int, ...]:
        """How many places the window has in each dimension of a tensor of shape `base`."""
        return tuple(self._places(dim, size) for dim, size in enumerate(base))

    def _places(self, dim: int, size: int) -> int:
        if DYNAMIC in (size, self.sizes[dim]):
            return DYNAMIC
        low, high = self.padding[dim]
        padded = low + _dilated(size, self.base_dilations[dim]) + high
        window = _dilated(self.sizes[dim], self.window_dilations[dim])
        if padded <= 0 or window > padded:
            return 0
        return (padded - window) // self.strides[dim] + 1


def _dilated(size: int, dilation: int) -> int:
    return (size - 1) * dilation + 1 if size > 0 else 0


def window_of(
    op: HloOp,
    sizes: Sequence[int],
    strides: DenseArrayBase[Any] | None,
    padding: Attribute | tuple[tuple[int, int], ...] | None,
    base_dilations: DenseArrayBase[Any] | None = None,
    window_dilations: DenseArrayBase[Any] | None = None,
    reversal: DenseArrayBase[Any] | None = None,
    *,
    known: bool = True,
) -> Window:
    """The window that an op's properties say; fails unless they agree and are positive.

    `known` is off where a size may be -1 because it comes from a tensor's type.
    """
    rank = len(sizes)
    ones = (1,) * rank
    lists = {
        "window_strides": values_of(strides) or ones,
        "base_dilations": values_of(base_dilations) or ones,
        "window_dilations": values_of(window_dilations) or ones,
    }
    for name, values in (("window_dimensions", tuple(sizes)), *lists.items()):
        check_length(op, name, values, rank)
        for value in values:
            unknown = value == DYNAMIC and name == "window_dimensions" and known is False
            if value <= 0 and not unknown:
                op.fail(f"{name} must be positive, got: {value}")
    check_length(op, "window_reversal", values_of(reversal) or ones, rank)
    pairs = padding if isinstance(padding, tuple) else padding_pairs(op, padding, rank)
    strides_, base, window = lists.values()
    return Window(tuple(sizes), strides_, pairs, base, window)


# --- regions -------------------------------------------------------------------------------


def returned(region: Region) -> tuple[SSAValue, ...]:
    """What the last op of a region's (last) block gives."""
    last = region.blocks[-1].last_op if region.blocks else None
    return () if last is None else tuple(last.operands)


def arguments(region: Region) -> tuple[SSAValue, ...]:
    """The arguments of a region's first block."""
    return tuple(region.blocks[0].args) if region.blocks else ()


def check_region(
    op: HloOp,
    name: str,
    region: Region,
    takes: Sequence[Attribute],
    gives: Sequence[Attribute] | None,
) -> None:
    """Fails unless the region takes and gives values of these types (None: any)."""
    if not region.blocks:
        op.fail(f"{name} must have a block, got: none")
    args = [arg.type for arg in arguments(region)]
    if len(args) != len(takes):
        op.fail(f"{name} must take {len(takes)} value(s), got: {len(args)}")
    for index, (arg, wanted) in enumerate(zip(args, takes, strict=True)):
        if not same_type(arg, wanted):
            op.fail(f"{name} argument {index} must be of type {wanted}, got: {arg}")
    results = [value.type for value in returned(region)]
    if gives is None:
        return
    if len(results) != len(gives):
        op.fail(f"{name} must give {len(gives)} value(s), got: {len(results)}")
    for index, (result, wanted) in enumerate(zip(results, gives, strict=True)):
        if not same_type(result, wanted):
            op.fail(f"{name} result {index} must be of type {wanted}, got: {result}")


def scalar(element: Attribute) -> AnyTensor:
    """A tensor type without dimensions."""
    return TensorType(element, ())


PREDICATE = scalar(i1)
"""`tensor<i1>`."""


def check_reducer(
    op: HloOp,
    region: Region,
    inputs: Sequence[Attribute],
    inits: Sequence[Attribute],
    allowed: Sequence[int] = (),
) -> tuple[Attribute, ...]:
    """Fails unless the region combines two values of each kind; gives the element types it makes.

    It takes for n inputs n accumulators and n elements, and gives n accumulators, whose type the
    init values and the inputs promote to. Elements may have the shape `allowed` or part of it.
    """
    count = len(inputs)
    args = [arg.type for arg in arguments(region)]
    check_length(op, "reducer arguments", args, 2 * count)
    results = [value.type for value in returned(region)]
    check_length(op, "reducer results", results, count)
    for index, result in enumerate(results):
        if not is_tensor(result):
            op.fail(f"reducer result {index} must be a tensor, got: {result}")
        for arg in (args[index], args[count + index]):
            if not same_type(arg, result):
                op.fail(f"reducer must take what it gives, {result}, got: {arg}")
        _check_accumulator(op, index, result, inputs[index], inits[index])
        shape = cast(AnyTensor, args[count + index]).get_shape()
        if len(shape) > len(allowed) or not _is_part(shape, allowed):
            op.fail(f"reducer argument {count + index} has a wrong shape, got: {args[index]}")
    return tuple(cast(AnyTensor, result).element_type for result in results)


def _check_accumulator(
    op: HloOp, index: int, result: AnyTensor, input_: Attribute, init: Attribute
) -> None:
    input_, init = cast(AnyTensor, input_), cast(AnyTensor, init)
    floats = kind_of(init.element_type) == kind_of(result.element_type) == "float"
    if not floats and not promotes(init.element_type, result.element_type):
        op.fail(f"init value {index} must promote to {result}, got: {init}")
    if not promotes(input_.element_type, result.element_type):
        op.fail(f"input {index} must promote to {result}, got: {input_}")
    if not same_shape(init.get_shape(), result.get_shape()):
        op.fail(f"init value {index} must have the shape of {result}, got: {init}")


def _is_part(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether the sizes of `shape` occur in `whole` in this order."""
    rest = iter(whole)
    return all(any(same_size(size, other) for other in rest) for size in shape)


def check_same_shapes(op: HloOp, values: Sequence[SSAValue], what: str) -> None:
    """Fails unless all values can have one shape."""
    for value in values[1:]:
        if not same_shape(shape_of(values[0]), shape_of(value)):
            op.fail(f"{what} must have one shape, got: {types_text(v.type for v in values)}")
