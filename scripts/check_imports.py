"""Which room imports which: fails when an import goes against the one way they all go.

A room may import itself and the rooms before it in `LAYERS`; two rooms of one layer may not import
each other. Inside the package imports are relative, so an absolute `partir.…` is a fault too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("partir_dialect",),
    ("engine",),
    ("passes", "interp"),
    ("cost",),
    ("tactics",),
    ("searcher",),
    ("runtime",),
    ("cli",),
    ("partir",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FOLDERS = {room: "src/partir" if room == "partir" else room for room in LEVEL}


def imported_rooms(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The line and the room of every import of the package in one file.

    `package` is the file's own package below `partir`, as in `("passes",)`; `()` is the face.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "partir":
                    yield node.lineno, "absolute"
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if (node.module or "").split(".")[0] == "partir":
                yield node.lineno, "absolute"
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - (node.level - 1)]
            parts = (*base, *(node.module.split(".") if node.module else ()))
            names = [parts[0]] if parts else [name.name for name in node.names]
            for name in names:
                yield node.lineno, name if name in LEVEL else "partir"


def faults(root: Path = ROOT) -> list[str]:
    """One line for each import that goes the wrong way, `FILE:LINE: …`."""
    found: list[str] = []
    for room, folder in FOLDERS.items():
        for file in sorted((root / folder).rglob("*.py")):
            inner = file.relative_to(root / folder).parent.parts
            package = inner if room == "partir" else (room, *inner)
            for line, target in imported_rooms(ast.parse(file.read_text()), package):
                if target == "absolute" and room == "partir":
                    continue  # its folder is elsewhere than its package, so it says it in full
                if target == "absolute":
                    why = "imports inside the package are relative"
                elif target != room and LEVEL[target] >= LEVEL[room]:
                    why = f"{room} may not import {target}"
                else:
                    continue
                found.append(f"{file.relative_to(root)}:{line}: {why}")
    return found


def main() -> int:
    found = faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
