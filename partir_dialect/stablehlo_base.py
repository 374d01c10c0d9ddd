"""What do all StableHLO ops share? Their base class, a cheap verifier, questions about types.

xDSL's own verifier walks a tree of constraints for each field. With twenty thousand ops that is
most of the time, so `hlo_op` compiles the structural part (counts, properties, classes of
types) once a class, and `verify_` holds what the specification says beyond it.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    ComplexType,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnrankedTensorType,
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

from .quant import QuantizedType
from .sdy_checks import check_sharding_attribute

DYNAMIC = -1
"""How a dimension of unknown size is written in a shape."""

Tensor = BaseAttr[TensorType[Attribute]](TensorType)
"""Operands and results that are ranked tensors."""

Integers = BaseAttr(cast(type[DenseArrayBase[IntegerType]], DenseArrayBase))
"""Properties that are `array<i64: …>`."""

Int = BaseAttr(cast(type[IntegerAttr[IntegerType]], IntegerAttr))
"""Properties that are one integer or `true`/`false`."""

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
        """Raises `VerifyException` in the name of this op; the message ends in the value."""
        raise VerifyException(f"{self.name}: {message}")


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


def _element_class(constr: Any) -> type[Attribute] | None:
    """The class that a constraint asks for, if it asks for a class and nothing else."""
    while not isinstance(constr, (AnyAttr, BaseAttr)):
        constr = constr.constraint if hasattr(constr, "constraint") else constr.constr
    return None if isinstance(constr, AnyAttr) else cast(BaseAttr[Attribute], constr).attr


def _values_check(what: str, defs: Sequence[tuple[str, Any]], same: bool) -> _Check | None:
    """Counts and classes of the operands or the results; None if another check does it."""
    variadic = [isinstance(d, (VarOperandDef, VarResultDef)) for _, d in defs]
    number, many = len(defs), sum(variadic)
    optional = any(isinstance(d, (OptOperandDef, OptResultDef)) for _, d in defs)
    if optional or (many > 1 and not same):
        return None
    fixed = number - many
    wanted = [
        (_element_class(d.constr), name, v) for (name, d), v in zip(defs, variadic, strict=True)
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
        for cls, name, var in wanted:
            following = position + (size if var else 1)
            if cls is not None:
                for value in values[position:following]:
                    if not isinstance(value.type, cls):
                        op.fail(f"{what} {name} must be of type {cls.name}, got: {value.type}")
            position = following

    return check


def _properties_check(op_def: OpDef) -> _Check:
    table = {
        key: (_element_class(d.constr), not isinstance(d, OptPropertyDef))
        for key, d in op_def.properties.items()
    }
    needed = [key for key, (_, required) in table.items() if required]

    def check(op: HloOp) -> None:
        properties = op.properties
        for key in needed:
            if key not in properties:
                op.fail(f"a property is missing: {key}")
        for key, value in properties.items():
            if key not in table:
                op.fail(f"unknown property: {key}")
            cls = table[key][0]
            if cls is not None and not isinstance(value, cls):
                op.fail(f"property {key} must be a {cls.name}, got: {value}")

    return check


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
        sharding = op.attributes.get("sdy.sharding")
        if sharding is not None:
            check_sharding_attribute(op, sharding, op.fail)
        count = len(op.regions)
        if count < regions or (count > regions and not open_regions):
            op.fail(f"expected {regions} region(s), got: {count}")
        properties(op)
        for trait in traits:
            trait.verify(op)

    return check


# --- questions about types -----------------------------------------------------------------

_KINDS: dict[type[Attribute], str] = {
    BFloat16Type: "float",
    Float16Type: "float",
    Float32Type: "float",
    Float64Type: "float",
    ComplexType: "complex",
    IndexType: "index",
}


def kind_of(element: Attribute) -> str:
    """What an element is: pred, int, uint, float, complex, quant, index or other."""
    if isinstance(element, IntegerType):
        element = cast(IntegerType, element)
        if element.signedness.data is Signedness.UNSIGNED:
            return "uint"
        if element.width.data == 1:
            return "pred"
        return "int"
    kind = _KINDS.get(type(element))
    if kind is not None:
        return kind
    if isinstance(element, QuantizedType):
        return "quant"
    return "float" if isinstance(element, AnyFloat) else "other"


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


def same_type(a: Attribute, b: Attribute) -> bool:
    """Whether two types can be the same: equal up to sizes that one of them does not know."""
    if a is b or a == b:
        return True
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return _same_unranked(a, b)
    a, b = cast(AnyTensor, a), cast(AnyTensor, b)
    if a.element_type != b.element_type or not same_shape(a.get_shape(), b.get_shape()):
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
