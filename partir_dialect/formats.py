"""How is each op written in pretty form?

A table, read by the reader and by the printer alike. A format is a line of

    %            one operand            %*  all remaining operands
    {name:codec} an attribute, written as the codec says (`codec` below)
    word , = [   punctuation and words, as they stand
    ( … )?       a group that is there only if its attribute is
    : shape      how the types are written; the attribute dictionary stands before the colon

and the shapes of types are

    same      `t` if operands and results all have type t, else `(t, …) -> t`
    fn        `(t, …) -> t`
    result    the result types
    pair      one type for each operand; the results have the same types
    select    the predicate's type and the result's, or `(t, …) -> t`
    complex   the result's type, complex<t>; operands have type t
    tuple     the result's type; operands have its element types
    arrow     `t, … -> t, …`
    operands  the operand types; there are no results
    operand   the type of all operands, which the results share
    cond      the type of every operand but the first, which is i1
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

UNARY = "% : same"
BINARY = "%, % : same"
CALL = "%* : fn"

_SAME_UNARY = """abs cbrt ceil cosine count_leading_zeros exponential exponential_minus_one floor
log log_plus_one logistic negate not popcnt round_nearest_afz round_nearest_even rsqrt sign sine
sqrt tan tanh""".split()
_SAME_BINARY = """add and atan2 divide maximum minimum multiply or power remainder shift_left
shift_right_arithmetic shift_right_logical subtract xor""".split()
_FUNCTIONAL = """convert bitcast_convert is_finite reshape real imag uniform_quantize
uniform_dequantize dynamic_reshape real_dynamic_slice dynamic_pad infeed outfeed send recv
""".split()

_STABLEHLO = {
    **dict.fromkeys(_SAME_UNARY, UNARY),
    **dict.fromkeys(_SAME_BINARY, BINARY),
    **dict.fromkeys(_FUNCTIONAL, CALL),
    "after_all": "%* : same",
    "broadcast": "%, sizes = {broadcast_sizes:i64s} : fn",
    "broadcast_in_dim": "%, dims = {broadcast_dimensions:i64s} : fn",
    "cholesky": "% (, lower = {lower:bool})? : same",
    "clamp": "%, %, % : same",
    "compare": "{comparison_direction:comparison_direction}, %, % "
    "(, {compare_type:comparison_type})? : fn",
    "complex": "%, % : complex",
    "concatenate": "%*, dim = {dimension:i64} : fn",
    "create_token": ": result",
    "dot": "%, % (, precision = {precision_config:precisions})? : fn",
    "dot_general": "%, % {dot_dimension_numbers:dot} (, precision = {precision_config:precisions})?"
    " (, algorithm = {algorithm:dot_algorithm})? : fn",
    "dynamic_broadcast_in_dim": "%, %, dims = {broadcast_dimensions:i64s} : fn",
    "dynamic_iota": "%, dim = {iota_dimension:i64} : fn",
    "dynamic_slice": "%*, sizes = {slice_sizes:i64s} : fn",
    "dynamic_update_slice": "%* : fn",
    "einsum": "%, %, config = {einsum_config:string} : fn",
    "unary_einsum": "%, config = {einsum_config:string} : fn",
    "fft": "%, type = {fft_type:fft_type}, length = {fft_length:i64s} : fn",
    "get_dimension_size": "%, dim = {dimension:i64} : fn",
    "set_dimension_size": "%, %, dim = {dimension:i64} : fn",
    "get_tuple_element": "%[{index:i32}] : fn",
    "iota": "dim = {iota_dimension:i64} : result",
    "optimization_barrier": "%* : pair",
    "pad": "%, %, low = {edge_padding_low:i64s}, high = {edge_padding_high:i64s}, "
    "interior = {interior_padding:i64s} : fn",
    "partition_id": ": result",
    "replica_id": ": result",
    "reduce_precision": "%, format = {exponent_bits+mantissa_bits:exmy} : same",
    "return": "%* : operands",
    "reverse": "%, dims = {dimensions:i64s} : operand",
    "rng": "%, %, %, distribution = {rng_distribution:rng_distribution} : fn",
    "rng_bit_generator": "%, algorithm = {rng_algorithm:rng_algorithm} : fn",
    "select": "%, %, % : select",
    "slice": "% {start_indices+limit_indices+strides:ranges} : fn",
    "transpose": "%, dims = {permutation:i64s} : fn",
    "tuple": "%* : tuple",
    "torch_index_select": "%, %, dim = {dim:i64}, batch_dims = {batch_dims:i64} : fn",
}

_CHLO_UNARY = """acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc
is_inf is_neg_inf is_pos_inf lgamma sinh square tan constant_like""".split()
_CHLO_BINARY = """broadcast_add broadcast_and broadcast_atan2 broadcast_divide broadcast_maximum
broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma
broadcast_power broadcast_remainder broadcast_shift_left broadcast_shift_right_arithmetic
broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta broadcast_complex
next_after polygamma zeta""".split()

_CHLO = {
    **dict.fromkeys(_CHLO_UNARY, "% : arrow"),
    **dict.fromkeys(_CHLO_BINARY, "%, % : arrow"),
    "top_k": "%, k = {k:i64} : arrow",
}

_SDY = {
    "sharding_constraint": "% {sharding:#sdy.sharding} : operand",
    "reshard": "% {sharding:#sdy.sharding} : operand",
    "return": "%* : operands",
    "propagation_barrier": "% allowed_direction = {allowed_direction:#sdy.propagation_direction}"
    " : operand",
}

FORMATS: dict[str, str] = {
    **{f"stablehlo.{name}": text for name, text in _STABLEHLO.items()},
    **{f"chlo.{name}": text for name, text in _CHLO.items()},
    **{f"sdy.{name}": text for name, text in _SDY.items()},
    "func.return": "%* : operands",
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


Part = Literal | Operands | Field | Group


@dataclass(frozen=True)
class Format:
    """What stands before the attribute dictionary, and the shape of the types after it."""

    parts: tuple[Part, ...]
    types: str


_TOKEN = re.compile(r"\{([^}]*)\}|%(\*)?|(\(\s*,)|(\)\?)|([a-z_]+ =|[a-z_]+|[^\s])")


def _parse_format(text: str) -> Format:
    body, _, types = text.rpartition(":")
    parts: list[Part] = []
    group: list[Literal | Field] | None = None
    for match in _TOKEN.finditer(body):
        token = match[0]
        if token.startswith("{"):
            names, codec = match[1].split(":")
            part: Literal | Field = Field(tuple(names.split("+")), codec)
        elif token.startswith("%"):
            parts.append(Operands(match[2] is not None))
            continue
        elif match[3]:
            group = [Literal(",")]
            continue
        elif match[4]:
            assert group is not None
            parts.append(Group(tuple(group)))
            group = None
            continue
        else:
            part = Literal(token)
        (parts if group is None else group).append(part)
    return Format(tuple(parts), types.strip())


@cache
def format_of(name: str) -> Format | None:
    """The pretty format of an op, if the table has one."""
    text = FORMATS.get(name)
    return None if text is None else _parse_format(text)
