"""What was asked: scripts of tactics, read, checked and applied to a session."""

from __future__ import annotations

from .apply import Run, apply, run
from .check import Checked, check
from .imports import load
from .objects import (
    Auto,
    Batch,
    Context,
    Edges,
    Embedding,
    Expert,
    Megatron,
    Microbatch,
    Pipeline,
    Replicate,
    Sequence,
    Tactic,
    Tile,
    Zero1,
    Zero2,
    Zero3,
    script_of,
)
from .parser import parse
from .primitives import Searcher, SearchRequest
from .steps import Asked, Expectation, Inferred, Step, Warned
from .syntax import Script
from .world import Measure

__all__ = [
    "Asked",
    "Auto",
    "Batch",
    "Checked",
    "Context",
    "Edges",
    "Embedding",
    "Expectation",
    "Expert",
    "Inferred",
    "Measure",
    "Megatron",
    "Microbatch",
    "Pipeline",
    "Replicate",
    "Run",
    "Script",
    "SearchRequest",
    "Searcher",
    "Sequence",
    "Step",
    "Tactic",
    "Tile",
    "Warned",
    "Zero1",
    "Zero2",
    "Zero3",
    "apply",
    "check",
    "load",
    "parse",
    "run",
    "script_of",
]
