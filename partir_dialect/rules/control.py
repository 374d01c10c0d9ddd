"""Which ops are opaque, and why? Named here, so that no op is blocked by oversight."""

from __future__ import annotations

from .base import RuleFunction
from .builder import blocked

_CONTROL = "case composite custom_call if return while".split()
_BITS = "rng rng_bit_generator".split()
_DEVICES = (
    "after_all all_gather all_reduce all_to_all async_done async_start collective_broadcast "
    "collective_permute create_token cross-replica-sum infeed outfeed partition_id recv "
    "reduce_scatter replica_id send"
).split()
_SHAPES_AT_RUN_TIME = (
    "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape "
    "get_dimension_size real_dynamic_slice set_dimension_size"
).split()
_TUPLES = "get_tuple_element tuple".split()
_SDY = (
    "all_gather all_reduce all_slice all_to_all collective_permute data_flow_edge "
    "func_data_flow_edge manual_computation mesh named_computation reduce_scatter "
    "replicated_to_unreduced return sharded_to_unreduced sharding_group"
).split()

REASONS: dict[str, str] = {
    **dict.fromkeys((f"stablehlo.{n}" for n in _CONTROL), "control flow or a call"),
    **dict.fromkeys((f"stablehlo.{n}" for n in _BITS), "every device would draw the same bits"),
    **dict.fromkeys((f"stablehlo.{n}" for n in _DEVICES), "device-local already"),
    **dict.fromkeys((f"stablehlo.{n}" for n in _SHAPES_AT_RUN_TIME), "sizes known at run time"),
    **dict.fromkeys((f"stablehlo.{n}" for n in _TUPLES), "tuples have no dimensions"),
    **dict.fromkeys((f"sdy.{n}" for n in _SDY), "device-local already, or no computation"),
    "chlo.scan": "control flow or a call",
}
"""Why an op has no factor to tile: shown when it is gathered."""

RULES: dict[str, RuleFunction] = dict.fromkeys(REASONS, blocked)
