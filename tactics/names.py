"""Which arguments and results does a pattern name?

A pattern matches a whole flat path or a suffix of it that begins at a component: `tokens` is
`batch/tokens`. `*` stays within a component, `**` crosses components, `[qkv]` is one of those
characters and `{a,b}` one of those words. JAX's spelling means the same: `params['layer_0']['wq']`
is `params/layer_0/wq` (brackets that hold a quote are keys). A leading `/` allows the whole path
only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..partir_dialect.errors import Span, TacticError

_KEY = re.compile(r"""\[\s*(?P<quote>['"])(?P<key>.*?)(?P=quote)\s*\]""")
_ATTRIBUTE = re.compile(r"(?<=[A-Za-z_\]0-9])\.(?=[A-Za-z_])")
_WORDS = re.compile(r"\{(?P<words>[^{}]*)\}")
_PIECE = re.compile(
    r"(?P<star>\*+)|(?P<any>\?)|\[(?P<not>[!^]?)(?P<class>[^\]]+)\]|(?P<open>[\[{])"
    r"|(?P<text>.)"
)


def flat_pattern(text: str) -> str:
    """A pattern in either spelling, in the flat one: `params['a'].w` → `params/a/w`."""
    flat = _KEY.sub(lambda match: "/" + match["key"], text)
    if flat != text or ("/" not in text and "[" not in text):
        flat = _ATTRIBUTE.sub("/", flat)
    return re.sub(r"/{2,}", "/", flat).removeprefix("/") if not text.startswith("/") else flat


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> re.Pattern[str]:
    """The pattern as a regular expression for `fullmatch`; raises `ValueError` for a bad one."""
    flat = flat_pattern(text)
    return re.compile("|".join(_path(path) for path in _alternatives(flat)))


def _alternatives(pattern: str) -> list[str]:
    """`a/{b,c/d}` → `a/b`, `a/c/d`."""
    match = _WORDS.search(pattern)
    if match is None:
        return [pattern]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [
        path
        for word in match["words"].split(",")
        for path in _alternatives(before + word.strip() + after)
    ]


def _path(flat: str) -> str:
    """The expression of a pattern without alternatives."""
    if not flat.strip("/"):
        raise ValueError("an empty pattern")
    parts = flat.strip("/").split("/")
    expression = "" if flat.startswith("/") else r"(?:.*/)?"
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            expression += r".+" if last else r"(?:[^/]+/)*"
        else:
            expression += _component(part) + ("" if last else "/")
    return expression


def _component(part: str) -> str:
    out: list[str] = []
    for match in _PIECE.finditer(part):
        if match["star"]:
            out.append(".*" if len(match["star"]) > 1 else "[^/]*")
        elif match["any"]:
            out.append("[^/]")
        elif match["class"]:
            body = re.escape(match["class"]).replace(r"\-", "-")
            out.append(f"[{'^' if match['not'] else ''}{body}]")
        elif match["open"]:
            raise ValueError(f"{match['open']!r} is not closed")
        else:
            out.append(re.escape(match["text"]))
    return "".join(out)


def matching(pattern: str, names: Sequence[str], span: Span | None = None) -> list[int]:
    """The indices of the names that match, in order; raises `TacticError` for a bad pattern."""
    try:
        expression = compile_pattern(pattern)
    except (ValueError, re.error) as error:
        raise TacticError(
            f"not a name pattern: {pattern!r} ({error})", span=span, name=pattern
        ) from None
    return [i for i, name in enumerate(names) if expression.fullmatch(name)]


def suggestions(pattern: str, names: Iterable[str]) -> list[str]:
    """What the writer of a pattern that matches nothing may have meant: suffixes with as many
    components, in the names' order, without repetition."""
    length = flat_pattern(pattern).strip("/").count("/") + 1
    found: dict[str, None] = {}
    for name in names:
        parts = name.split("/")
        found["/".join(parts[-length:])] = None
    for name in names:
        found[name] = None
    return list(found)


def nothing_matches(
    pattern: str, names: Sequence[str], what: str, span: Span | None
) -> TacticError:
    """The fault of a pattern that names nothing."""
    return TacticError(
        f"no {what} is named {pattern!r}",
        span=span,
        name=flat_pattern(pattern),
        candidates=suggestions(pattern, names),
    )
