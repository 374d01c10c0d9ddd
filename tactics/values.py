"""What can a name in a running script stand for?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Match:
    """A value of the program with what the user calls it; `uses`: what uses it is meant."""

    value: int
    name: str
    uses: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Axis:
    """A mesh axis; in arithmetic it is its size."""

    name: str
    size: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Role:
    """All arguments of one role; in arithmetic it is how many there are."""

    name: str
    matches: tuple[Match, ...]

    def __str__(self) -> str:
        return self.name


Value = int | float | bool | str | None | Match | Axis | Role | tuple["Value", ...] | list["Value"]


@dataclass
class Scope:
    """Variables; a tactic's body sees its parameters and the script's `let`s, not its caller's."""

    variables: dict[str, Value] = field(default_factory=dict[str, Value])
    outer: Scope | None = None

    def get(self, name: str) -> tuple[Value, bool]:
        """The value and whether there is one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name], True
            scope = scope.outer
        return None, False

    def names(self) -> list[str]:
        """All names that can be seen."""
        found = list(self.variables)
        return found + (self.outer.names() if self.outer else [])

    def inner(self, variables: Mapping[str, Value]) -> Scope:
        """A scope inside this one."""
        return Scope(dict(variables), self)


def describe(value: Value) -> str:
    """A value for a message, with its kind."""
    if isinstance(value, Axis | Role | Match):
        what = {Axis: "mesh axis", Role: "role", Match: "value"}[type(value)]
        return f"the {what} {value.name!r}"
    match value:
        case bool() | None:
            return str(value).lower()
        case int() | float():
            return f"the number {value:g}"
        case str():
            return f"the text {value!r}"
        case _:
            return "a list"
