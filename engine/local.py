"""Which ops the lowering may make device-local, and by which rewrites: the whitelist.

An op kind that is in no table here is gathered and reported, never localised by changing its type;
a factor whose rewrite is not in `REWRITES` counts as blocked. `passes/localise.py` implements each
entry, and a test holds the two together.
"""

from __future__ import annotations

_UNARY = (
    "abs cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor imag "
    "is_finite log log_plus_one logistic negate not popcnt real reduce_precision "
    "round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh optimization_barrier"
).split()
_BINARY = (
    "add and atan2 compare complex divide maximum minimum multiply or power remainder shift_left "
    "shift_right_arithmetic shift_right_logical subtract xor"
).split()
_CHLO = (
    "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf "
    "is_neg_inf is_pos_inf lgamma next_after polygamma sinh square tan zeta"
).split()

RETYPED: frozenset[str] = frozenset(
    [f"stablehlo.{name}" for name in (*_UNARY, *_BINARY)]
    + [f"chlo.{name}" for name in _CHLO]
    + [
        f"stablehlo.{name}"
        for name in (
            "bitcast_convert broadcast_in_dim cholesky clamp concatenate dot_general fft pad "
            "reduce reduce_window reshape reverse scatter select select_and_scatter sort transpose "
            "triangular_solve iota batch_norm_inference dynamic_update_slice convolution"
        ).split()
    ]
    + ["chlo.top_k", "partir.argument", "partir.result", "partir.replicate", "partir.stop"]
    + ["sdy.sharding_constraint"]
)
"""Kinds that a change of result types alone makes local, once their operands are local."""

ATTRIBUTES: frozenset[str] = frozenset(
    f"stablehlo.{name}" for name in ("constant", "slice", "gather", "dynamic_slice", "custom_call")
)
"""Kinds of which attributes hold sizes of whole dimensions and must be made local too."""

LOCAL_OPS: frozenset[str] = RETYPED | ATTRIBUTES

MASKED: frozenset[str] = frozenset(
    f"stablehlo.{name}" for name in ("dot_general", "convolution", "reduce", "scatter")
)
"""Kinds of which a reduced dimension may be padded: padding becomes the identity of ⊕."""

MASK = "mask"
"""The rewrite of a padded REDUCTION factor (it is no rule's: any kind in `MASKED` may need it)."""

EXCHANGED: frozenset[str] = frozenset(
    "slice pad concatenate reverse reduce_window convolution".split()
)
"""Rewrites that exchange pieces of tiles (`engine/exchange.py`), where the op's form allows it; a
`slice` that leaves a partial result does not."""

REWRITES: frozenset[str] = EXCHANGED | frozenset(
    "iota init_once convolution_groups gather_index scatter_index dynamic_slice "
    "dynamic_update_slice".split()
)
"""Local rewrites of special factors (names as in `Factor.rewrite`)."""

UNEVEN: frozenset[str] = frozenset(
    "iota gather_index scatter_index dynamic_slice dynamic_update_slice".split()
)
"""Rewrites that hold for tiles with padding at the tail, too: indices are clamped or dropped by the
global size, so that they never meet the padding."""

ALONE: frozenset[str] = frozenset({"dynamic_update_slice"})
"""Rewrites of which an op takes one factor at a time, as those with an exchange."""
