"""How is each op written in pretty form?

A table, read by the reader and by the printer alike. A format is a line of

    %            one operand            %*  all remaining operands
    {name:codec} an attribute, written as the codec says
    word , = [   punctuation and words, as they stand
    (? … )?      a group that is there only if its attribute is
    attr-dict    the attribute dictionary, if it does not stand right before the colon
    body         `(%a: t, …) { … }`, a region with its arguments
    : shape      how the types are written

A codec that begins with `#` is the spelling of the attribute with `*` for the bracket, or `@`
for the word, that is all the pretty form shows of it. The others are `i64`, `i32`, `bool`,
`string`, `i64s` (`[0, 1]`), `enum words` and those with a syntax of their own (`CODECS`).
The shapes of types are

    same      `t` if operands and results all have type t, else `(t, …) -> t`
    fn        `(t, …) -> t`
    result    the result types
    pair      one type for each operand; the results have the same types
    select    the predicate's type and the result's, or `(t, …) -> t`
    complex   the result's type, complex<t>; operands have type t
    tuple     the result's type; operands have its element types
    arrow     `t, … -> t, …`
    operands  the operand types; there are no results
    operand   the type of all operands and of the result
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

UNARY = "% : same"
BINARY = "%, % : same"
CALL = "%* : fn"

_SAME_UNARY = """abs cbrt ceil convert cosine count_leading_zeros exponential
exponential_minus_one floor log log_plus_one logistic negate not popcnt round_nearest_afz
round_nearest_even rsqrt sign sine sqrt tan tanh""".split()
_SAME_BINARY = """add and atan2 divide maximum minimum multiply or power remainder shift_left
shift_right_arithmetic shift_right_logical subtract xor""".split()
_FUNCTIONAL = """bitcast_convert is_finite reshape real imag uniform_quantize
uniform_dequantize dynamic_reshape real_dynamic_slice dynamic_pad""".split()
_PRECISION = "(?, precision = {precision_config:precisions})?"
_ALGORITHM = "(?, algorithm = {algorithm:#stablehlo.dot_algorithm*})?"

_STABLEHLO = {
    **dict.fromkeys(_SAME_UNARY, UNARY),
    **dict.fromkeys(_SAME_BINARY, BINARY),
    **dict.fromkeys(_FUNCTIONAL, CALL),
    "after_all": "%* : same",
    "broadcast": "%, sizes = {broadcast_sizes:i64s} : fn",
    "broadcast_in_dim": "%, dims = {broadcast_dimensions:i64s} : fn",
    "cholesky": "% (?, lower = {lower:bool})? : same",
    "clamp": "%, %, % : same",
    "compare": "{comparison_direction:#stablehlo<comparison_direction @>}, %, % "
    "(?, {compare_type:#stablehlo<comparison_type @>})? : fn",
    "complex": "%, % : complex",
    "concatenate": "%*, dim = {dimension:i64} : fn",
    "create_token": ": result",
    "dot": f"%, % {_PRECISION} : fn",
    "dot_general": f"%, % {{dot_dimension_numbers:dot}} {_PRECISION} {_ALGORITHM} : fn",
    "dynamic_broadcast_in_dim": "%, %, dims = {broadcast_dimensions:i64s} : fn",
    "dynamic_iota": "%, dim = {iota_dimension:i64} : fn",
    "dynamic_slice": "%*, sizes = {slice_sizes:i64s} : fn",
    "dynamic_update_slice": CALL,
    "einsum": "%, %, config = {einsum_config:string} : fn",
    "unary_einsum": "%, config = {einsum_config:string} : fn",
    "fft": "%, type = {fft_type:#stablehlo<fft_type @>}, length = {fft_length:i64s} : fn",
    "get_dimension_size": "%, dim = {dimension:i64} : fn",
    "set_dimension_size": "%, %, dim = {dimension:i64} : fn",
    "get_tuple_element": "%[{index:i32}] : fn",
    "iota": "dim = {iota_dimension:i64} : result",
    "optimization_barrier": "attr-dict %* : pair",
    "pad": "%, %, low = {edge_padding_low:i64s}, high = {edge_padding_high:i64s}, "
    "interior = {interior_padding:i64s} : fn",
    "partition_id": ": result",
    "replica_id": ": result",
    "reduce_precision": "%, format = {exponent_bits+mantissa_bits:exmy} : same",
    "return": "%* : operands",
    "reverse": "%, dims = {dimensions:i64s} : operand",
    "rng": "%, %, %, distribution = {rng_distribution:#stablehlo<rng_distribution @>} : fn",
    "rng_bit_generator": "%, algorithm = {rng_algorithm:#stablehlo<rng_algorithm @>} : fn",
    "select": "%, %, % : select",
    "slice": "% {start_indices+limit_indices+strides:ranges} : fn",
    "transpose": "%, dims = {permutation:i64s} : fn",
    "tuple": "%* : tuple",
}

_CHLO_UNARY = """acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc
is_inf is_neg_inf is_pos_inf lgamma sinh square tan""".split()
_CHLO_BINARY = "next_after polygamma zeta".split()
_CHLO_BROADCAST = """broadcast_add broadcast_and broadcast_atan2 broadcast_compare
broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply
broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder
broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical
broadcast_subtract broadcast_xor broadcast_zeta""".split()

_CHLO = {
    **dict.fromkeys(_CHLO_UNARY, "% : arrow"),
    **dict.fromkeys(_CHLO_BINARY, "%, % : arrow"),
    **dict.fromkeys(_CHLO_BROADCAST, "%, % : fn"),
    "top_k": "(%, k = {k:i64}) : arrow",
}

_OUT = "out_sharding={out_sharding:#sdy.sharding*} : operand"
_LISTS = "#sdy<list_of_axis_ref_lists*>"
_VALUES = "#sdy.sharding_per_value<*>"

_SDY = {
    "mesh": "{sym_name:symbol} = {mesh:#sdy.mesh*} : none",
    "sharding_constraint": "% {sharding:#sdy.sharding*} : operand",
    "reshard": "% {sharding:#sdy.sharding*} : operand",
    "sharding_group": "% group_id={group_id:i64} : operands",
    "return": "attr-dict %* : operands",
    "propagation_barrier": "% allowed_direction={allowed_direction:"
    "enum NONE FORWARD BACKWARD BOTH} : operand",
    "data_flow_edge": "% (?sharding={sharding:#sdy.sharding*})? : operand",
    "func_data_flow_edge": "% (?sharding={sharding:#sdy.sharding*})? : operand",
    "all_gather": f"{{gathering_axes:{_LISTS}}} % {_OUT}",
    "all_slice": f"{{slicing_axes:{_LISTS}}} % {_OUT}",
    "all_reduce": f"{{reduction_axes:#sdy<axis_ref_list*>}} % {_OUT}",
    "all_to_all": f"{{params:#sdy<all_to_all_param_list*>}} % {_OUT}",
    "reduce_scatter": f"{{reduce_scatter_axes:{_LISTS}}} % {_OUT}",
    "collective_permute": f"% {_OUT}",
    "replicated_to_unreduced": f"{{axes:#sdy<axis_ref_list*>}} % {_OUT}",
    "sharded_to_unreduced": f"{{axes:{_LISTS}}} % {_OUT}",
    "manual_computation": f"(%*) in_shardings={{in_shardings:{_VALUES}}} "
    f"out_shardings={{out_shardings:{_VALUES}}} manual_axes={{manual_axes:#sdy<manual_axes*>}} "
    "body : fn",
    "named_computation": f"<{{name:string}}>(%*) (?in_shardings={{in_shardings:{_VALUES}}})? "
    f"(?out_shardings={{out_shardings:{_VALUES}}})? body : fn",
}

FORMATS: dict[str, str] = {
    **{f"stablehlo.{name}": text for name, text in _STABLEHLO.items()},
    **{f"chlo.{name}": text for name, text in _CHLO.items()},
    **{f"sdy.{name}": text for name, text in _SDY.items()},
    "func.return": "attr-dict %* : operands",
    "func.constant": "{value:symbol_reference} : result",
    "func.call": "{callee:symbol_reference}(%*) : fn",
    "stablehlo.custom_call": "{call_target_name:symbol}(%*) : fn",
    "shape.shape_of": "% : arrow",
    "shape.const_shape": "{shape:shape} : result",
    "stablehlo.composite": "{name:string} %* : fn",
}


@dataclass(frozen=True)
class Literal:
    """Punctuation or a word."""

    text: str


@dataclass(frozen=True)
class Operands:
    """One operand, or all that remain."""

    variadic: bool


@dataclass(frozen=True)
class Field:
    """One or more attributes and how they are written."""

    names: tuple[str, ...]
    codec: str


@dataclass(frozen=True)
class Group:
    """Parts that are there only if the first attribute among them is."""

    parts: tuple[Literal | Field, ...]

    @property
    def name(self) -> str:
        """The attribute that decides."""
        return next(part.names[0] for part in self.parts if isinstance(part, Field))


@dataclass(frozen=True)
class Dictionary:
    """The attribute dictionary."""


@dataclass(frozen=True)
class Body:
    """A region with its arguments."""


Part = Literal | Operands | Field | Group | Dictionary | Body


@dataclass(frozen=True)
class Format:
    """What is written after the op's name, and the shape of the types after it."""

    parts: tuple[Part, ...]
    types: str


_TOKEN = re.compile(
    r"\{(?P<field>[^}]*)\}|%(?P<all>\*)?|(?P<open>\(\?)|(?P<close>\)\?)"
    r"|(?P<dict>attr-dict)|(?P<body>body)|[a-z_]+|\S"
)


def _field(text: str) -> Field:
    names, _, codec = text.partition(":")
    return Field(tuple(names.split("+")), codec)


def _parse_format(text: str) -> Format:
    head, _, types = text.rpartition(":")
    parts: list[Part] = []
    group: list[Literal | Field] | None = None
    for match in _TOKEN.finditer(head):
        if match["open"]:
            group = []
        elif match["close"]:
            parts.append(Group(tuple(group or ())))
            group = None
        elif match["dict"] or match["body"]:
            parts.append(Dictionary() if match["dict"] else Body())
        elif match[0].startswith("%"):
            parts.append(Operands(match["all"] is not None))
        else:
            part = Literal(match[0]) if match["field"] is None else _field(match["field"])
            (parts if group is None else group).append(part)
    if Dictionary() not in parts:
        parts.append(Dictionary())
    return Format(tuple(parts), types.strip())


@cache
def format_of(name: str) -> Format | None:
    """The pretty format of an op, if the table has one."""
    text = FORMATS.get(name)
    return None if text is None else _parse_format(text)
