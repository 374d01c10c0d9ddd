"""How does a rule read? `b i k, b k j -> b i j where k = add`, the notation of rule strings.

`_` is a blocked dimension, `1` one without a factor, `(i j)` a product, `()` a scalar. Kinds beyond
parallel follow `where`: a reduction by its ⊕, special factors with their rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from string import ascii_lowercase

from .base import Dims, Factor, Kind, Rule


def rule_text(rule: Rule) -> str:
    """The rule on one line; factors are named in order of appearance."""
    names = _names(rule)
    left = ", ".join(_value(dims, rule, names) for dims in rule.operands)
    right = ", ".join(_value(dims, rule, names) for dims in rule.results)
    clauses = [f"{name} = {_kind(rule.factors[f])}" for f, name in names.items()]
    shown = [clause for clause in clauses if not clause.endswith("= parallel")]
    tail = f" where {', '.join(shown)}" if shown else ""
    return f"{left} -> {right}{tail}".strip()


def _letters() -> Iterator[str]:
    yield from ascii_lowercase[8:]
    yield from ascii_lowercase[:8]
    for number in count():
        yield f"f{number}"


def _names(rule: Rule) -> dict[int, str]:
    """A letter for every factor but those that are a blocked dimension by themselves."""
    letters = _letters()
    places: dict[int, int] = {}
    for dims in (*rule.operands, *rule.results):
        for made_of in dims:
            for f in made_of:
                alone = len(made_of) == 1 and rule.factors[f].kind is Kind.BLOCKED
                places[f] = places.get(f, 0) + (1 if alone else 2)
    return {f: next(letters) for f, weight in places.items() if weight > 1}


def _value(dims: Dims, rule: Rule, names: dict[int, str]) -> str:
    if not dims:
        return "()"
    shown: list[str] = []
    for made_of in dims:
        inner = [names.get(f, "_") for f in made_of]
        shown.append(f"({' '.join(inner)})" if len(inner) > 1 else (inner or ["1"])[0])
    return " ".join(shown)


def _kind(factor: Factor) -> str:
    if factor.kind is Kind.REDUCTION:
        return f"{factor.reducer} ({factor.rewrite})" if factor.rewrite else str(factor.reducer)
    if factor.kind is Kind.BLOCKED:
        return "blocked"
    word = "parallel" if factor.kind is Kind.PARALLEL else "special"
    if factor.rewrite is None:
        return word
    reducer = f", {factor.reducer}" if factor.reducer else ""
    return f"{word} ({factor.rewrite}{reducer})"
