"""Which dims do elementwise ops share? All of them: `([i,j],[i,j])->([i,j])`, scalars `[]`.

One table of names; the linearity column is a second one, for the few ops that have it.
"""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute, Operation

from ..dtypes import numpy_dtype
from ..errors import PartirError
from .base import Linearity, Rule, RuleFunction
from .builder import RuleBuilder, at, out
from .linearity import ADD, EVERY, joint, single
from .properties import integers
from .reducers import element_text, element_type_of

_STABLEHLO = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide "
    "exponential exponential_minus_one floor imag is_finite log log_plus_one logistic map maximum "
    "minimum multiply negate not or popcnt power real reduce_precision remainder "
    "round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic "
    "shift_right_logical sign sine sqrt subtract tan tanh uniform_dequantize uniform_quantize xor"
).split()
_CHLO = (
    "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj constant_like cosh digamma "
    "erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square "
    "tan zeta"
).split()
_CHLO_BROADCASTING = (
    "add and atan2 compare complex divide maximum minimum multiply next_after or polygamma power "
    "remainder select shift_left shift_right_arithmetic shift_right_logical subtract xor zeta"
).split()
_IDENTITIES = (
    "sdy.propagation_barrier",
    "sdy.reshard",
    "sdy.sharding_constraint",
    "partir.replicate",
    "partir.stop",
)


def _lattice(reducer: str) -> tuple[Linearity, ...]:
    """max, min, and, or: (a⊕b)⊕c = (a⊕c)⊕(b⊕c), and both sides partial as well."""
    own = frozenset({reducer})
    return (joint((0, 1), own), single((0, 1), own))


_LINEAR: dict[str, tuple[Linearity, ...]] = {
    "stablehlo.add": (joint((0, 1), ADD),),
    "stablehlo.subtract": (joint((0, 1), ADD),),
    "stablehlo.complex": (joint((0, 1), ADD),),
    "stablehlo.multiply": (single((0, 1), ADD), joint((0, 1), frozenset({"mul"}))),
    "stablehlo.negate": (single((0,), ADD),),
    "stablehlo.real": (single((0,), ADD),),
    "stablehlo.imag": (single((0,), ADD),),
    "stablehlo.maximum": _lattice("max"),
    "stablehlo.minimum": _lattice("min"),
    "stablehlo.and": _lattice("and"),
    "stablehlo.or": _lattice("or"),
    "stablehlo.select": (joint((1, 2), EVERY),),
    **{name: (single((0,), EVERY),) for name in _IDENTITIES},
}


def elementwise(op: Operation) -> Rule:
    """Every dimension is one factor of all operands and results of full rank; scalars have none."""
    linear = _LINEAR.get(op.name)
    if linear is None:
        conditional = _CONDITIONAL.get(op.name)
        linear = () if conditional is None else conditional(op)
    return elementwise_rule(op, linear)


def elementwise_rule(op: Operation, linear: tuple[Linearity, ...] = ()) -> Rule:
    """The rule of an elementwise op with the given linearity column."""
    builder = RuleBuilder(op)
    rank = len(builder.results[0])
    full = [k for k, shape in enumerate(builder.operands) if len(shape) == rank]
    for dim in range(rank):
        results = (out(dim, r) for r in range(len(builder.results)))
        builder.join(*(at(k, dim) for k in full), *results)
    return builder.build(linear)


def _divide(op: Operation) -> tuple[Linearity, ...]:
    """(a+b)/c = a/c + b/c, but never for integers, which truncate."""
    element = element_type_of(op.results[0])
    if isinstance(element, ComplexType) or _is_float(element):
        return (single((0,), ADD),)
    return ()


def _is_float(element: Attribute | None) -> bool:
    return _precision(element) is not None


def _precision(element: Attribute | None) -> tuple[int, int] | None:
    """(mantissa bits, largest exponent) of a float type or of the parts of a complex one."""
    if isinstance(element, ComplexType):
        return _precision(cast("ComplexType[Any]", element).element_type)
    if element is None:
        return None
    try:
        dtype = numpy_dtype(element)
        if dtype.kind not in "fV":
            return None
        info = cast("Any", ml_dtypes).finfo(dtype)
    except (PartirError, ValueError):
        return None
    return int(info.nmant), int(info.maxexp)


def _convert(op: Operation) -> tuple[Linearity, ...]:
    """Widening floats keeps sums; any monotone ⊕ passes between floats and from integers; never to
    integers, which truncate (and where what overflows is not defined)."""
    source, target = element_type_of(op.operands[0]), element_type_of(op.results[0])
    if source == target:
        return (single((0,), EVERY),)
    narrow, wide = _precision(source), _precision(target)
    if wide is None:
        return ()
    is_complex = isinstance(source, ComplexType), isinstance(target, ComplexType)
    if is_complex[0] and not is_complex[1]:  # drops the imaginary part: linear, but unusual
        return ()
    reducers: set[str] = set()
    if narrow is not None and narrow[0] <= wide[0] and narrow[1] <= wide[1]:
        reducers.add("add")
    if not any(is_complex) and element_text(op.operands[0]) != "i1":
        reducers |= {"max", "min"}
    return (single((0,), frozenset(reducers)),) if reducers else ()


_CONDITIONAL = {"stablehlo.convert": _convert, "stablehlo.divide": _divide}


def bitcast_convert(op: Operation) -> Rule:
    """The leading dimensions both sides have; one that the change of width adds is blocked."""
    builder = RuleBuilder(op)
    shared = min(len(builder.operands[0]), len(builder.results[0]))
    for dim in range(shared):
        builder.join(at(0, dim), out(dim))
    return builder.build()


def barrier(op: Operation) -> Rule:
    """Operand k and result k are the same; nothing is shared between pairs."""
    builder = RuleBuilder(op)
    for k, shape in enumerate(builder.operands):
        for dim in range(len(shape)):
            builder.join(at(k, dim), out(dim, k))
    return builder.build((joint(range(len(builder.operands)), EVERY),))


def broadcasting(op: Operation) -> Rule:
    """CHLO's implicit broadcasts: aligned at the minor end, or by `broadcast_dimensions`."""
    builder = RuleBuilder(op)
    rank = len(builder.results[0])
    shapes = builder.operands
    explicit = integers(op, "broadcast_dimensions")
    smallest = min(len(shape) for shape in shapes)
    for dim in range(rank):
        places = [out(dim)]
        for k, shape in enumerate(shapes):
            if explicit is not None and len(shape) == smallest and len(shape) < rank:
                own = explicit.index(dim) if dim in explicit else -1
            else:
                own = dim - (rank - len(shape))
            if own >= 0:
                places.append(at(k, own))
        builder.join(*places)
    return builder.build()


TYPES_ONLY: dict[str, RuleFunction] = {
    **{f"stablehlo.{name}": elementwise for name in _STABLEHLO},
    **{f"chlo.{name}": elementwise for name in _CHLO},
    **{name: elementwise for name in _IDENTITIES},
    "stablehlo.bitcast_convert": bitcast_convert,
    "stablehlo.optimization_barrier": barrier,
}
RULES: dict[str, RuleFunction] = {
    f"chlo.broadcast_{name}": broadcasting for name in _CHLO_BROADCASTING
}
