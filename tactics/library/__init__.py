"""Which tactics come with partir? The scripts of this folder, written in the language itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..parser import parse
from ..syntax import TacticDefinition

PREFIX = "partir:"
"""Library files are named with this prefix in places: `partir:zero3.tactic`."""


@cache
def library() -> dict[str, TacticDefinition]:
    """The library's tactics by name."""
    found: dict[str, TacticDefinition] = {}
    for entry in sorted(files("partir.tactics.library").iterdir(), key=lambda path: path.name):
        if entry.name.endswith(".tactic"):
            script = parse(entry.read_text(), PREFIX + entry.name)
            for definition in script.definitions:
                assert definition.name not in found, definition.name
                found[definition.name] = definition
    return found
