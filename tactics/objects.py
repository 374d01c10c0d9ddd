"""How are tactics said in Python? Small frozen objects, each of which is one statement of a script.

`partir.partition(program, mesh, [Batch("batch"), Megatron("model"), Zero3("batch")])` does what the
script with the same lines does.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, fields
from typing import cast

from .parser import parse
from .syntax import Script

Names = Sequence_[str]


def _literal(value: object) -> str:
    """A Python value as an expression of the language."""
    match value:
        case bool() | None:
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return f'"{value}"' if '"' not in value else f"'{value}'"
        case list() | tuple():
            items = cast("Iterable[object]", value)
            return "[" + ", ".join(_literal(item) for item in items) + "]"
        case _:
            raise TypeError(f"not a value of the tactic language: {value!r}")


@dataclass(frozen=True)
class Tactic:
    """A statement that calls a tactic; the class name in lower case is the tactic's name."""

    @property
    def text(self) -> str:
        """The statement, as written in a script; arguments that have their default are left out."""
        given = [
            f"{field.name}={_literal(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__.lower()}({', '.join(given)})"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Batch(Tactic):
    """Data parallelism: dimension 0 of the inputs along the axis."""

    axis: str
    inputs: Names | str | None = None


@dataclass(frozen=True)
class Megatron(Tactic):
    """Tensor parallelism in Megatron's column and row pairs."""

    axis: str
    vocab: bool = False


@dataclass(frozen=True)
class Zero1(Tactic):
    """Optimizer state sharded along the axis."""

    axis: str
    vectors: bool = False


@dataclass(frozen=True)
class Zero2(Tactic):
    """Optimizer state and gradients sharded along the axis."""

    axis: str
    vectors: bool = False


@dataclass(frozen=True)
class Zero3(Tactic):
    """Parameters sharded too along the axis."""

    axis: str
    vectors: bool = False
    once: bool = False


@dataclass(frozen=True)
class Embedding(Tactic):
    """The vocabulary along the axis."""

    axis: str


@dataclass(frozen=True)
class Sequence(Tactic):
    """Activations between Megatron's pairs along the sequence."""

    axis: str
    dim: int = 1


@dataclass(frozen=True)
class Context(Tactic):
    """The sequence along the axis, inside attention too."""

    axis: str
    inputs: Names | str | None = None
    dim: int = 1


@dataclass(frozen=True)
class Expert(Tactic):
    """The experts of a mixture along the axis."""

    axis: str
    exchange: bool = True


@dataclass(frozen=True)
class Edges(Tactic):
    """The edges of a graph along the axis."""

    axis: str
    inputs: Names | str | None = None


@dataclass(frozen=True)
class Microbatch(Tactic):
    """The batch in n parts one after another."""

    n: int
    inputs: Names | str | None = None


@dataclass(frozen=True)
class Pipeline(Tactic):
    """Layers on the devices of the axis."""

    axis: str
    stages: int | None = None
    cut: str | None = None
    schedule: str = "gpipe"
    microbatches: int | None = None


@dataclass(frozen=True)
class Auto(Tactic):
    """A search for the best use of the axes."""

    axis: Names | str
    goal: str | None = None
    budget: int | None = None
    time_limit: float | None = None
    seed: int = 0
    memory: float | None = None


@dataclass(frozen=True)
class Tile(Tactic):
    """Raw action: one dimension of the named values along the axis."""

    target: str
    dim: int
    axis: str

    @property
    def text(self) -> str:
        return f"tile {_literal(self.target)} dim={self.dim} axis={_literal(self.axis)}"


@dataclass(frozen=True)
class Replicate(Tactic):
    """Raw action: the named values whole on all devices of the axis."""

    target: str
    axis: str

    @property
    def text(self) -> str:
        return f"replicate {_literal(self.target)} axis={_literal(self.axis)}"


def script_of(tactics: Sequence_[Tactic | str]) -> Script:
    """The script whose statements are these tactics (objects, or text as in a script)."""
    lines = [tactic if isinstance(tactic, str) else tactic.text for tactic in tactics]
    return parse("\n".join(lines) + "\n", "<python>")
