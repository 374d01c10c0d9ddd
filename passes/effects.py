"""Which ops may be merged, copied or dropped, and which must stay as they were written?"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, Pure

_DIALECTS = ("stablehlo.", "chlo.", "sdy.", "partir.")

# Ops that talk to the outside, to other devices or to a generator's state.
_EFFECTS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "after_all",
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "create_token",
        "infeed",
        "outfeed",
        "recv",
        "reduce_scatter",
        "rng",
        "rng_bit_generator",
        "send",
    )
)
_UNMERGED = frozenset({"stablehlo.optimization_barrier"})


def _says_effect(op: Operation) -> bool:
    flag = op.properties.get("has_side_effect")
    if isinstance(flag, IntegerAttr):
        return bool(flag.value.data)
    return False


def is_droppable(op: Operation) -> bool:
    """Whether the op does nothing but make its results: unused, it may go."""
    name = op.name
    if name in _EFFECTS or _says_effect(op) or op.has_trait(IsTerminator):
        return False
    if not name.startswith(_DIALECTS) and not op.has_trait(Pure):
        return False
    return all(
        is_droppable(inner) or inner.has_trait(IsTerminator)
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
    )


def is_mergeable(op: Operation) -> bool:
    """Whether two equal ops always make equal results, and one may stand for both."""
    return op.name not in _UNMERGED and is_droppable(op)
