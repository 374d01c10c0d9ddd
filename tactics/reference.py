"""What is in the language and the library? The generated parts of the reference page.

`python -m partir.tactics.reference docs/tactics.md` writes them anew between their markers, from
the grammar, the library and the tables; with `--check` it only says whether the page is up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .functions import FUNCTIONS
from .library import library
from .parser import grammar
from .primitives import PRIMITIVES
from .signature import Signature, signature_of
from .syntax import Constant, Expr, Name, Number, Text
from .syntax import Sequence as List
from .units import UNITS
from .words import KEYWORDS
from .world import FACTS, QUANTITIES

_MARKER = re.compile(
    r"(?P<open><!-- generated: (?P<part>[a-z]+) -->\n)(?P<body>.*?)(?P<close><!-- end -->)", re.S
)


def _value(expr: Expr | None) -> str:
    """A default as it would be written."""
    match expr:
        case Number():
            return f"{expr.value:g}"
        case Text():
            return f'"{expr.value}"'
        case Constant():
            return str(expr.value).lower()
        case Name():
            return expr.name
        case List():
            return "[" + ", ".join(_value(item) for item in expr.items) + "]"
        case _:
            return "…"


def _call(signature: Signature) -> str:
    parts = [
        f.name if f.default is None else f"{f.name}={_value(f.default)}" for f in signature.formals
    ]
    return f"{signature.name}({', '.join(parts)})"


def _library() -> str:
    parts: list[str] = []
    for name in sorted(library()):
        definition = library()[name]
        parts.append(f"### `{_call(signature_of(definition))}`\n\n{definition.doc}\n")
    for name in sorted(PRIMITIVES):
        primitive = PRIMITIVES[name]
        note = "" if primitive.supported else " Not supported by this version."
        parts.append(f"### `{_call(primitive.signature)}`\n\n{primitive.signature.doc}{note}\n")
    return "\n".join(parts)


def _table(rows: Sequence[tuple[str, str]], head: tuple[str, str]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in rows]
    return "\n".join(lines) + "\n"


def _functions() -> str:
    rows = [
        (_call(function.signature), " ".join(function.signature.doc.split()))
        for _, function in sorted(FUNCTIONS.items())
    ]
    return _table(rows, ("function", "answers"))


def _grammar() -> str:
    """The grammar file without its comments."""
    lines = [line for line in grammar().split("\n") if not line.startswith("//")]
    return "```lark\n" + "\n".join(lines).strip() + "\n```\n"


def _words() -> str:
    return "Words of the language: " + ", ".join(f"`{word}`" for word in KEYWORDS) + ".\n"


def _units() -> str:
    return "Units: " + ", ".join(f"`{unit}`" for unit in UNITS if unit) + ".\n"


PARTS: dict[str, Callable[[], str]] = {
    "library": _library,
    "functions": _functions,
    "facts": lambda: _table(list(FACTS.items()), ("fact", "is")),
    "quantities": lambda: _table(list(QUANTITIES.items()), ("quantity", "is")),
    "grammar": _grammar,
    "words": _words,
    "units": _units,
}


def renewed(page: str) -> str:
    """The page with its generated parts made anew."""

    def replace(match: re.Match[str]) -> str:
        return match["open"] + PARTS[match["part"]]() + match["close"]

    return _MARKER.sub(replace, page)


def main(arguments: Sequence[str]) -> int:
    """Renews the pages that are named, or checks them."""
    check = "--check" in arguments
    stale = 0
    for name in arguments:
        if name.startswith("--"):
            continue
        path = Path(name)
        old = path.read_text()
        new = renewed(old)
        if new != old:
            stale += 1
            if check:
                print(f"{name} is not up to date: run python -m partir.tactics.reference {name}")
            else:
                path.write_text(new)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
