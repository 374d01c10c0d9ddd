"""What did each statement of a script do? Frozen records for reports and explanations."""

from __future__ import annotations

from dataclasses import dataclass

from ..partir_dialect.errors import Span


@dataclass(frozen=True, slots=True)
class Asked:
    """One action and what became of it: `status` is done, already or refused (with the reason);
    `axis` is empty for `share`, which has none."""

    action: str
    name: str
    value: int
    dim: int | None
    axis: str
    status: str
    reason: str
    span: Span

    @property
    def text(self) -> str:
        """The action as a line of a script."""
        dim = "" if self.dim is None else f" dim={self.dim}"
        axis = f" axis={self.axis}" if self.axis else ""
        return f"{self.action} {self.name}{dim}{axis}"


@dataclass(frozen=True, slots=True)
class Inferred:
    """An argument that propagation placed though the statement did not ask for it."""

    name: str
    argument: int
    dim: int
    axis: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the user should know; with `strict` it is an error."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Expectation:
    """An `expect` clause and whether it held; `found` and `wanted` are the two sides, if it
    compares."""

    text: str
    held: bool
    message: str
    span: Span
    found: float | None = None
    wanted: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One top-level statement after its propagation.

    `tactic` is the statement as written; `asked` its actions in order; `inferred` what propagation
    placed besides; `decisions` how many ops were decided; `conflicts` how many ops are now open
    between two factors; `found` the script that a search came back with.
    """

    tactic: str
    span: Span
    asked: tuple[Asked, ...]
    inferred: tuple[Inferred, ...]
    decisions: int
    conflicts: int
    warnings: tuple[Warned, ...]
    found: str | None = None

    @property
    def done(self) -> tuple[Asked, ...]:
        """The actions that changed something."""
        return tuple(asked for asked in self.asked if asked.status == "done")

    @property
    def refused(self) -> tuple[Asked, ...]:
        """The actions that an earlier decision did not allow."""
        return tuple(asked for asked in self.asked if asked.status == "refused")
