"""Which tactics are not written in the language, what do they take, does this version have them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..engine.session import Session
from .signature import Formal, Signature
from .syntax import Constant, Number, Text

_NONE = Constant(None)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What `auto(…)` asks for: the axes to use, the goal in words, a budget in evaluations, a time
    limit in seconds, a seed, and a limit on memory in bytes per device."""

    axes: tuple[str, ...]
    goal: str | None = None
    budget: int | None = None
    time_limit: float | None = None
    seed: int = 0
    memory: float | None = None


class Searcher(Protocol):
    """Finds the rest of a plan; handed in by whoever applies a script with `auto(…)`."""

    def search(self, session: Session, request: SearchRequest) -> str:
        """The text of a script that goes on from the session's present state, which is left as it
        was."""
        ...


@dataclass(frozen=True, slots=True)
class Primitive:
    """A tactic that the language cannot say; `supported` is whether this version can apply it."""

    signature: Signature
    supported: bool = False


def _tactic(name: str, doc: str, *formals: Formal, supported: bool = False) -> Primitive:
    return Primitive(Signature("tactic", name, formals, doc), supported)


_TABLE: Sequence[Primitive] = (
    _tactic(
        "auto",
        "Searches for the best use of the axes from here on; the answer is a script.",
        Formal("axis", "axes", doc="one axis or a list of axes to use"),
        Formal("goal", "text", _NONE, "what to minimise, under which limits"),
        Formal("budget", "number", _NONE, "how many plans to evaluate"),
        Formal("time_limit", "number", _NONE, "seconds"),
        Formal("seed", "number", Number(0), "the same seed and budget give the same plan"),
        Formal("memory", "number", _NONE, "bytes per device"),
        supported=True,
    ),
    _tactic(
        "microbatch",
        "Runs the batch in n parts, one after another, and adds up the gradients.",
        Formal("n", "number"),
        Formal("inputs", "target", _NONE),
    ),
    _tactic(
        "pipeline",
        "Puts layers on the devices of an axis, which hand microbatches on to each other.",
        Formal("axis", "axis"),
        Formal("stages", "number", _NONE),
        Formal("cut", "text", _NONE),
        Formal("schedule", "text", Text("gpipe")),
        Formal("microbatches", "number", _NONE),
    ),
)

PRIMITIVES: dict[str, Primitive] = {p.signature.name: p for p in _TABLE}
