"""What do all StableHLO ops share? Their base class, a cheap verifier, questions about types.

xDSL's own verifier walks a tree of constraints for each field. With twenty thousand ops that is
most of the time, so `hlo_op` compiles the structural part (counts, properties, classes of
types) once a class, and `verify_` holds what the specification says beyond it.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeGuard, TypeVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    ComplexType,
    DenseArrayBase,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnrankedTensorType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    OpDef,
    OptOperandDef,
    OptPropertyDef,
    OptResultDef,
    VarOperandDef,
    VarRegionDef,
    VarResultDef,
    irdl_op_definition,
)
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from .quant import QuantizedType, UniformType
from .sdy_checks import check_rule_attribute, check_sharding_attribute

DYNAMIC = -1
"""How a dimension of unknown size is written in a shape."""

Tensor = BaseAttr[TensorType[Attribute]](TensorType)
"""Operands and results that are ranked tensors."""

Sizes = BaseAttr[TensorType[Attribute]](TensorType)
"""Operands that are tensors of integers, or of `index`: shapes and the like."""

Shaped = BaseAttr[TensorType[Attribute]](TensorType)
"""Operands and results that are tensors, ranked or not: CHLO has them."""

Indices = BaseAttr[TensorType[Attribute]](TensorType)
"""Operands that are tensors of integers of any kind, si32 too."""

Integers = BaseAttr(cast(type[DenseArrayBase[IntegerType]], DenseArrayBase))
"""Properties that are `array<i64: …>`."""

Flags = BaseAttr(cast(type[DenseArrayBase[IntegerType]], DenseArrayBase))
"""Properties that are `array<i1: …>`."""

Int = BaseAttr(cast(type[IntegerAttr[IntegerType]], IntegerAttr))
"""Properties that are an i64."""

Int32 = BaseAttr(cast(type[IntegerAttr[IntegerType]], IntegerAttr))
"""Properties that are an i32."""

Flag = BaseAttr(cast(type[IntegerAttr[IntegerType]], IntegerAttr))
"""Properties that are `true` or `false`."""

Float32 = BaseAttr(cast(type[FloatAttr[Float32Type]], FloatAttr))
"""Properties that are an f32."""

_WIDTHS: dict[int, Attribute] = {
    id(Integers): i64,
    id(Flags): i1,
    id(Int): i64,
    id(Int32): i32,
    id(Flag): i1,
    id(Float32): f32,
}
"""The type that a property's numbers have, by constraint."""

Array = BaseAttr[ArrayAttr[Attribute]](ArrayAttr)
"""Properties that are lists."""

Text = BaseAttr[StringAttr](StringAttr)
"""Properties that are strings."""

Value = SSAValue | Operation
"""What a builder takes for an operand: a value, or an op with one result."""

AnyTensor = TensorType[Attribute]


class HloOp(IRDLOperation, ABC):
    """An op of the StableHLO, CHLO or sdy dialect."""

    def fail(self, message: str) -> NoReturn:
        """Raises `VerifyException`; the message ends in the value at fault."""
        raise VerifyException(message)


OpClass = TypeVar("OpClass", bound=type[HloOp])


def hlo_op(cls: OpClass) -> OpClass:
    """Makes an op class of a `HloOp`, as `irdl_op_definition` does, with the cheap verifier.

    `verify_` of the class is called after the structure has been found sound.
    """
    custom = cast(Callable[[HloOp], None] | None, getattr(cls, "verify_", None))
    if custom is Operation.verify_:
        custom = None
    defined = irdl_op_definition(cls)
    structure = _structure_check(defined.get_irdl_definition())

    def verify_(self: HloOp) -> None:
        structure(self)
        if custom is not None:
            custom(self)

    setattr(defined, "verify_", verify_)  # noqa: B010
    return defined


# --- the structural part of verification ---------------------------------------------------

_Check = Callable[[HloOp], None]


def _innermost(constr: Any) -> AnyAttr | BaseAttr[Attribute]:
    """What a constraint on a list of values asks of each."""
    while not isinstance(constr, (AnyAttr, BaseAttr)):
        constr = constr.constraint if hasattr(constr, "constraint") else constr.constr
    return cast("AnyAttr | BaseAttr[Attribute]", constr)


def _classes(constr: AnyAttr | BaseAttr[Attribute]) -> tuple[type[Attribute], ...]:
    """The classes that a constraint allows; none if it allows every one."""
    if isinstance(constr, AnyAttr):
        return ()
    return (constr.attr, UnrankedTensorType) if constr is Shaped else (constr.attr,)


def _values_check(what: str, defs: Sequence[tuple[str, Any]], same: bool) -> _Check | None:
    """Counts and classes of the operands or the results; None if another check does it."""
    variadic = [isinstance(d, (VarOperandDef, VarResultDef)) for _, d in defs]
    number, many = len(defs), sum(variadic)
    optional = any(isinstance(d, (OptOperandDef, OptResultDef)) for _, d in defs)
    if optional or (many > 1 and not same):
        return None
    fixed = number - many
    constraints = [_innermost(d.constr) for _, d in defs]
    wanted = [
        (_classes(constr), _ELEMENTS.get(id(constr)), name, var)
        for (name, _), var, constr in zip(defs, variadic, constraints, strict=True)
    ]
    field = "_operands" if what == "operand" else "results"

    def check(op: HloOp) -> None:
        values: Sequence[SSAValue] = getattr(op, field)
        count = len(values)
        if (count < fixed or (count - fixed) % many) if many else count != fixed:
            least = "at least " if many else ""
            op.fail(f"expected {least}{fixed} {what}(s), got: {count}")
        size = (count - fixed) // many if many else 0
        position = 0
        for classes, kinds, name, var in wanted:
            following = position + (size if var else 1)
            if classes:
                for value in values[position:following]:
                    type_ = value.type
                    if not isinstance(type_, classes):
                        kind = classes[0].name
                        op.fail(f"{what} {name} must be of type {kind}, got: {type_}")
                    if kinds is not None and kind_of(element_of(value)) not in kinds:
                        op.fail(f"{what} {name} must have other elements, got: {type_}")
            position = following

    return check


def _width_of(value: Attribute) -> Attribute:
    """The type of the numbers in a property."""
    return cast(Any, value).elt_type if isinstance(value, DenseArrayBase) else cast(Any, value).type


def _properties_check(op_def: OpDef) -> _Check:
    constraints = {key: _innermost(d.constr) for key, d in op_def.properties.items()}
    table = {
        key: (_classes(constr), _WIDTHS.get(id(constr))) for key, constr in constraints.items()
    }
    needed = [k for k, d in op_def.properties.items() if not isinstance(d, OptPropertyDef)]

    def check(op: HloOp) -> None:
        properties = op.properties
        for key in needed:
            if key not in properties:
                op.fail(f"a property is missing: {key}")
        for key, value in properties.items():
            if key not in table:
                op.fail(f"unknown property: {key}")
            classes, width = table[key]
            if not classes:
                continue
            if not isinstance(value, classes):
                op.fail(f"property {key} must be a {classes[0].name}, got: {value}")
            if width is not None and _width_of(value) != width:
                op.fail(f"property {key} must be of {width}, got: {value}")

    return check


_DISCARDABLE: dict[str, Callable[[HloOp, Attribute, Callable[[str], NoReturn]], None]] = {
    "sdy.sharding": check_sharding_attribute,
    "sdy.sharding_rule": check_rule_attribute,
}
"""Attributes that any op may have, and what checks them."""


def _structure_check(op_def: OpDef) -> _Check:
    options = {type(option).__name__ for option in op_def.options}
    operands = _values_check("operand", op_def.operands, "SameVariadicOperandSize" in options)
    results = _values_check("result", op_def.results, False)
    if operands is None or results is None:
        return op_def.verify
    properties = _properties_check(op_def)
    regions = sum(not isinstance(d, VarRegionDef) for _, d in op_def.regions)
    open_regions = regions < len(op_def.regions)
    traits = [t for t in op_def.traits if type(t).verify is not OpTrait.verify]

    def check(op: HloOp) -> None:
        operands(op)
        results(op)
        for key, attr in op.attributes.items():
            if key in _DISCARDABLE:
                _DISCARDABLE[key](op, attr, op.fail)
        count = len(op.regions)
        if count < regions or (count > regions and not open_regions):
            op.fail(f"expected {regions} region(s), got: {count}")
        properties(op)
        for trait in traits:
            trait.verify(op)

    return check


# --- questions about types -----------------------------------------------------------------

_FLOATS: tuple[type[Attribute], ...] = (
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
)
_KINDS: dict[type[Attribute], str] = {**dict.fromkeys(_FLOATS, "float"), IndexType: "index"}
_INTEGERS: dict[tuple[Signedness, int], str] = {
    **{(Signedness.SIGNLESS, width): "int" for width in (2, 4, 8, 16, 32, 64)},
    **{(Signedness.UNSIGNED, width): "uint" for width in (2, 4, 8, 16, 32, 64)},
    (Signedness.SIGNLESS, 1): "pred",
}
_ELEMENTS: dict[int, frozenset[str]] = {
    id(Tensor): frozenset({"pred", "int", "uint", "float", "complex", "quant"}),
    id(Sizes): frozenset({"int", "uint", "index"}),
}
"""Which elements a tensor operand or result may have, by constraint."""


def kind_of(element: Attribute) -> str:
    """What an element is: pred, int, uint, float, complex, quant, index or other.

    `other` is what StableHLO has no use for: i3, si32, tf32, complex<i32> …
    """
    kind = _KINDS.get(type(element))
    if kind is not None:
        return kind
    if isinstance(element, IntegerType):
        element = cast(IntegerType, element)
        return _INTEGERS.get((element.signedness.data, element.width.data), "other")
    if isinstance(element, ComplexType):
        part = cast("ComplexType[AnyFloat]", element).element_type
        return "complex" if isinstance(part, (Float32Type, Float64Type)) else "other"
    return "quant" if isinstance(element, QuantizedType) else "other"


def is_tensor(type_: Attribute) -> TypeGuard[AnyTensor]:
    """Whether a type is a ranked tensor."""
    return isinstance(type_, TensorType)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value that is a ranked tensor; -1 where the size is not known."""
    return cast(AnyTensor, value.type).get_shape()


def element_of(value: SSAValue) -> Attribute:
    """The element type of a value that is a ranked tensor."""
    return cast(AnyTensor, value.type).element_type


def same_size(a: int, b: int) -> bool:
    """Whether two sizes can be the same: equal, or one of them unknown."""
    return a == b or DYNAMIC in (a, b)


def same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes can be the same."""
    return a == b or (len(a) == len(b) and all(map(same_size, a, b)))


def _bounds_fit(a: AnyTensor, b: AnyTensor) -> bool:
    """Whether sizes that one type knows keep to the bounds that the other has."""
    for one, other in ((a, b), (b, a)):
        bounds: tuple[int | None, ...] = getattr(one.encoding, "bounds", ())
        for bound, size in zip(bounds, other.get_shape(), strict=False):
            if bound is not None and size > bound:
                return False
    return True


def same_element(a: Attribute, b: Attribute) -> bool:
    """Whether two element types are the same; of quantised ones the scales do not matter."""
    if a is b or a == b:
        return True
    if not isinstance(a, UniformType) or not isinstance(b, UniformType):
        return False
    return (a.storage_text, a.expressed_text) == (b.storage_text, b.expressed_text)


def same_type(a: Attribute, b: Attribute) -> bool:
    """Whether two types can be the same: equal up to sizes that one of them does not know."""
    if a is b or a == b:
        return True
    if not is_tensor(a) or not is_tensor(b):
        return _same_unranked(a, b)
    if not same_element(a.element_type, b.element_type):
        return False
    if not same_shape(a.get_shape(), b.get_shape()):
        return False
    return (a.encoding is b.encoding) or _bounds_fit(a, b)


def _same_unranked(a: Attribute, b: Attribute) -> bool:
    tensors = (TensorType, UnrankedTensorType)
    if not isinstance(a, tensors) or not isinstance(b, tensors):
        return False
    return cast(AnyTensor, a).element_type == cast(AnyTensor, b).element_type


def same_types(a: Sequence[Attribute], b: Sequence[Attribute]) -> bool:
    """Whether two lists of types can be the same."""
    return len(a) == len(b) and all(map(same_type, a, b))


def values_of(array: DenseArrayBase[Any] | None, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The numbers of an `array<i64: …>` property, or the default if it is absent."""
    return default if array is None else array.get_values()


def int_of(attr: IntegerAttr[Any]) -> int:
    """The number in an integer attribute."""
    return attr.value.data


def is_true(attr: IntegerAttr[Any] | None) -> bool:
    """Whether a boolean attribute is there and true."""
    return attr is not None and bool(attr.value.data)


def types_text(types: Iterable[Attribute]) -> str:
    """Types for a message: `tensor<2xf32>, tensor<i1>`."""
    return ", ".join(map(str, types))


# --- what builders need --------------------------------------------------------------------


def integers(values: Iterable[int]) -> DenseArrayBase[IntegerType]:
    """`array<i64: …>` of Python ints."""
    return DenseArrayBase.from_list(i64, list(values))


def int64(value: int) -> IntegerAttr[IntegerType]:
    """`value : i64`."""
    return IntegerAttr(value, i64)


def boolean(value: bool) -> BoolAttr:
    """`true` or `false`."""
    return BoolAttr.from_bool(value)


def tensor_of(value: Value) -> AnyTensor:
    """The type of a value that has to be a ranked tensor."""
    type_ = SSAValue.get(value).type
    assert isinstance(type_, TensorType), f"a ranked tensor is needed, got: {type_}"
    return cast(AnyTensor, type_)


def with_shape(type_: AnyTensor, shape: Iterable[int]) -> AnyTensor:
    """The tensor type of these elements and another shape."""
    return TensorType(type_.element_type, shape)


def with_element(type_: AnyTensor, element: Attribute) -> AnyTensor:
    """The tensor type of this shape and other elements."""
    return TensorType(element, type_.get_shape())
