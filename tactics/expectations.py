"""Does what the script expects hold, and if not, by how much and because of what?"""

from __future__ import annotations

from collections import Counter

from . import syntax as s
from .evaluate import Evaluator
from .steps import Expectation
from .values import Scope
from .world import KINDS, World

_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_SHOWN = 3


def judge(statement: s.Expect, evaluator: Evaluator, scope: Scope) -> Expectation:
    """Evaluates one `expect`; raises `TacticError` only for a fault in the clause itself."""
    condition = statement.condition
    held = evaluator.truth(evaluator.value(condition, scope), condition.span)
    found = wanted = None
    if isinstance(condition, s.Binary) and condition.operator in _COMPARE:
        sides = [evaluator.value(side, scope) for side in (condition.left, condition.right)]
        numbers = [side for side in sides if isinstance(side, int | float)]
        if len(numbers) == 2 and not any(isinstance(n, bool) for n in numbers):
            found, wanted = float(numbers[0]), float(numbers[1])
    message = "" if held else _message(statement, evaluator.world, found, wanted)
    return Expectation(statement.text, held, message, statement.span, found, wanted)


def _message(statement: s.Expect, world: World, found: float | None, wanted: float | None) -> str:
    said = f"{statement.message}: " if statement.message else ""
    text = statement.text.removeprefix("expect ")
    message = f"{said}expected {text}"
    if found is not None and wanted is not None:
        message += f", got {_number(found)} against {_number(wanted)}"
    blame = [line for kind in _kinds(statement.condition) for line in _blame(world, kind)]
    return message + ("; from " + "; ".join(blame) if blame else "")


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.6g}"


def _kinds(expr: s.Expr) -> list[str]:
    """The kinds of collectives that an expression mentions."""
    match expr:
        case s.Name():
            kind = expr.name.partition(".")[0]
            return [kind] if kind in KINDS else list(KINDS) if kind == "collectives" else []
        case s.Unary():
            return _kinds(expr.operand)
        case s.Binary():
            return list(dict.fromkeys(_kinds(expr.left) + _kinds(expr.right)))
        case _:
            return []


def _blame(world: World, kind: str) -> list[str]:
    """Who asked for the collectives of a kind: statement, number, and where most of the bytes
    are."""
    plan = world.session.plan()
    statements = world.session.statements
    counts: Counter[int] = Counter()
    largest: dict[int, tuple[int, str]] = {}
    for reshard in plan.reshards:
        if reshard.kind != kind:
            continue
        counts[reshard.tactic] += reshard.count
        value = plan.values[reshard.source].value
        place = world.graph.locations[world.graph.producer[value][0]]
        if reshard.bytes >= largest.get(reshard.tactic, (-1, ""))[0]:
            largest[reshard.tactic] = (reshard.bytes, place)
    lines: list[str] = []
    for index, count in counts.most_common(_SHOWN):
        who = statements[index].tactic if 0 <= index < len(statements) else "the program"
        lines.append(f"{count} {kind} by {who}, the largest at {largest[index][1] or 'unknown'}")
    return lines
