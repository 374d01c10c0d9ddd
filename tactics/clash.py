"""Which statements cannot hold together? The smallest part of a script that shows a clash.

A clash is a statement that is refused, or an expectation that fails, because of what stands before
it. Statements before it are left out one by one while the clash stays (deletion filtering); what is
left is minimal: without any one of them it would not happen. Each try runs the rest anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..engine.roles import Roles
from ..engine.session import Session
from ..partir_dialect.errors import TacticError
from . import syntax as s
from .apply import Run, run
from .imports import expand
from .world import Measure

_ACTS = (s.Call, s.Action, s.For, s.If)


@dataclass(frozen=True, slots=True)
class Clash:
    """Statements that do not hold together, in the script's order; the last is what fails, and
    `reason` says how."""

    statements: tuple[s.Statement, ...]
    reason: str

    @property
    def text(self) -> str:
        """`A; B do not hold together: …`, each with its place."""
        lines = [f"{statement.text} ({statement.where})" for statement in self.statements]
        return f"{'; '.join(lines)} do not hold together: {self.reason}"


def clashes(
    script: s.Script,
    fresh: Callable[[], Session],
    *,
    roles: Roles | None = None,
    measure: Measure | None = None,
) -> tuple[Clash, ...]:
    """The clashes of a script, one for each statement that is refused in part or expectation that
    fails; `fresh` gives a session in which nothing is decided.

    Raises `TacticError` for a fault of the script. Cost: at most n²/2 runs for n statements.
    """
    whole = expand(script)
    kept = tuple(st for st in whole.statements if not isinstance(st, (*_ACTS, s.Expect)))

    def failing(statements: Sequence[s.Statement]) -> str:
        """Why the last statement fails behind the others, or nothing."""
        part = s.Script((*kept, *statements), whole.file, whole.source)
        return _failure(
            run(part, fresh(), roles=roles, measure=measure), isinstance(statements[-1], s.Expect)
        )

    acting = [st for st in whole.statements if isinstance(st, (*_ACTS, s.Expect))]
    found: list[Clash] = []
    for index, statement in enumerate(acting):
        before = [st for st in acting[:index] if isinstance(st, _ACTS)]
        reason = failing([*before, statement])
        if reason and (isinstance(statement, s.Expect) or not failing([statement])):
            part = _smallest(before, statement, failing)
            found.append(Clash((*part, statement), failing([*part, statement])))
    return tuple(found)


def _failure(result: Run, expectation: bool) -> str:
    if expectation:
        last = result.expectations[-1]
        return "" if last.held else last.message
    refused = result.steps[-1].refused
    return f"{refused[0].text}: {refused[0].reason}" if refused else ""


def _smallest(
    before: Sequence[s.Statement],
    statement: s.Statement,
    failing: Callable[[Sequence[s.Statement]], str],
) -> list[s.Statement]:
    """A part of `before` without any one of which the statement would not fail."""
    part = list(before)
    for candidate in list(before):
        rest = [st for st in part if st is not candidate]
        try:
            still = failing([*rest, statement])
        except TacticError:  # the rest does not even apply without it
            continue
        if still:
            part = rest
    return part
