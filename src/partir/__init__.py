"""The public face: what `import partir` offers, each name loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partir.partir_dialect.errors import (
        ExpectationError,
        LoweringError,
        MeshError,
        MismatchError,
        PartirError,
        ReadError,
        RuleError,
        TacticError,
    )
    from partir.partir_dialect.mesh import Mesh
    from partir.partir_dialect.placement import Placement
    from partir.runtime.partition import Partitioned, partition
    from partir.runtime.program import Program, from_jax, read, read_text
    from partir.tactics.objects import (
        Auto,
        Batch,
        Embedding,
        Megatron,
        Microbatch,
        Pipeline,
        Replicate,
        Tactic,
        Tile,
        Zero1,
        Zero2,
        Zero3,
    )

_HOMES = {
    "partir_dialect.errors": (
        "ExpectationError",
        "LoweringError",
        "MeshError",
        "MismatchError",
        "PartirError",
        "ReadError",
        "RuleError",
        "TacticError",
    ),
    "partir_dialect.mesh": ("Mesh",),
    "partir_dialect.placement": ("Placement",),
    "runtime.partition": ("Partitioned", "partition"),
    "runtime.program": ("Program", "from_jax", "read", "read_text"),
    "tactics.objects": (
        "Auto",
        "Batch",
        "Embedding",
        "Megatron",
        "Microbatch",
        "Pipeline",
        "Replicate",
        "Tactic",
        "Tile",
        "Zero1",
        "Zero2",
        "Zero3",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Auto",
    "Batch",
    "Embedding",
    "ExpectationError",
    "LoweringError",
    "Megatron",
    "Mesh",
    "MeshError",
    "Microbatch",
    "MismatchError",
    "PartirError",
    "Partitioned",
    "Pipeline",
    "Placement",
    "Program",
    "ReadError",
    "Replicate",
    "RuleError",
    "Tactic",
    "TacticError",
    "Tile",
    "Zero1",
    "Zero2",
    "Zero3",
    "from_jax",
    "partition",
    "read",
    "read_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
