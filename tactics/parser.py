"""Which tree does a text mean, and if none, what is wrong where?

`parse` gives a `Script`; every fault of the text is one `TacticError` with its place, what was
found and what would be right there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput
from lark.lark import PostLex

from ..partir_dialect.errors import Span, TacticError
from .syntax import Script
from .tree import build
from .words import KEYWORDS, STATEMENTS

_WORDS = {
    "_NL": "the end of the line",
    "$END": "the end of the script",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a quoted string",
    "PATTERN": "a name pattern",
    "COMPARE": "a comparison",
    "SUM": "'+' or '-'",
    "PRODUCT": "'*', '/', '//' or '%'",
    "CONSTANT": "true, false or none",
    "ACTION": "tile, replicate, stop or share",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "EQUAL": "'='",
}
_CLOSES = {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}
_ORDER = tuple(_WORDS)


class LineEnds(PostLex):
    """Drops the line ends that mean nothing: inside ( ) and [ ], repeated, after `{`.

    Looks at no token ahead, because the lexer depends on the parser's state.
    """

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        previous = "_NL"
        for token in stream:
            depth = max(0, depth + _CLOSES.get(token.type, 0))
            if token.type == "_NL" and (depth or previous in ("_NL", "LBRACE")):
                continue
            previous = token.type
            yield token


@cache
def grammar() -> str:
    """The text of `tactic.lark`."""
    return files("partir.tactics").joinpath("tactic.lark").read_text()


@cache
def _parser() -> Any:
    return Lark(
        grammar(),
        parser="lalr",
        lexer="contextual",
        postlex=LineEnds(),
        propagate_positions=True,
        maybe_placeholders=False,
    )


def parse(text: str, filename: str = "<string>") -> Script:
    """The script that `text` is; raises `TacticError` with the place of the first fault."""
    tree = parse_tree(text, filename)
    return build(tree, text, filename, comments(text))


def parse_tree(text: str, filename: str) -> Any:
    """Lark's tree of a text."""
    _refuse_characters(text, filename)
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise fault(error, text, filename) from None


_COMMENT_OR_STRING = re.compile(r"""(?P<comment>\#[^\n]*)|"[^"\n]*"|'[^'\n]*'""")


def comments(text: str) -> list[Token]:
    """The comments of a text that parses, in order, as tokens with their place."""
    return [
        Token(
            "COMMENT",
            match["comment"].rstrip(),
            start_pos=match.start(),
            line=text.count("\n", 0, match.start()) + 1,
        )
        for match in _COMMENT_OR_STRING.finditer(text)
        if match["comment"]
    ]


def tokens(text: str, filename: str = "<string>") -> list[Token]:
    """All tokens and comments of a text that parses, in order; for the formatter."""
    parse_tree(text, filename)
    found: list[Token] = list(_parser().parse_interactive(text).iter_parse())
    return sorted([*found, *comments(text)], key=lambda token: token.start_pos or 0)


def _refuse_characters(text: str, filename: str) -> None:
    for offset, character in enumerate(text):
        if character == "\0" or (character.isspace() and character not in " \t\n\r"):
            raise TacticError(
                f"a character that is no part of a script: {character!r}",
                span=Span.at(filename, text, offset),
            )


# --- faults -------------------------------------------------------------------------------------


def fault(error: UnexpectedInput, text: str, filename: str) -> TacticError:
    """The parser's complaint in the user's words."""
    if isinstance(error, UnexpectedCharacters):
        return _bad_character(error, text, filename)
    unexpected: Any = error
    if isinstance(error, UnexpectedEOF):
        token, expected = Token("$END", ""), set(unexpected.expected)
    else:
        token, expected = unexpected.token, set(unexpected.accepts or unexpected.expected)
    at_end = token.type == "$END"
    offset = len(text.rstrip()) if at_end else token.start_pos or 0
    return _bad_token(token, offset, expected, text, filename)


def _bad_character(error: UnexpectedCharacters, text: str, filename: str) -> TacticError:
    offset = cast("int", error.pos_in_stream)
    allowed: set[str] = set(error.allowed or ())
    character = text[offset]
    span = Span.at(filename, text, offset)
    if character in "\"'":
        line = text[offset:].split("\n", 1)[0]
        span = Span.at(filename, text, offset, len(line))
        return TacticError(f"a string that does not end on its line: {line}", span=span)
    if character == "[":
        return TacticError("'[' is not closed on its line", span=span)
    word = _word_at(text, offset)
    if word:
        return _bad_token(Token("NAME", word, offset), offset, allowed, text, filename)
    return TacticError(f"expected {_list(allowed)}, got: {character!r}", span=span)


def _bad_token(
    token: Token, offset: int, expected: set[str], text: str, filename: str
) -> TacticError:
    at_end = token.type in ("$END", "_NL")
    span = Span.at(filename, text, offset, 1 if at_end else max(1, len(token.value)))
    first, at = _first_word(text, offset)
    if expected == {"LPAR"} and at < offset and first not in KEYWORDS:
        return TacticError(
            f"not a statement: {first!r} (a tactic is called as {first}(…))",
            span=Span.at(filename, text, at, len(first)),
            name=first,
            candidates=STATEMENTS,
        )
    for applies, message in _SLIPS:
        if applies(first, token.type, expected):
            return TacticError(message, span=span)
    got = _WORDS[token.type] if at_end else repr(str(token))
    opened = _unclosed(text, offset)
    hint = ""
    if opened is not None and token.type == "$END":
        where = Span.at(filename, text, opened)
        hint = f" ({text[opened]!r} of line {where.line} is not closed)"
    return TacticError(
        f"expected {_list(expected)}, got: {got}{hint}",
        span=span,
        name=str(token),
        candidates=_literals(expected),
    )


_SLIPS: tuple[tuple[Callable[[str, str, set[str]], bool], str], ...] = (
    (
        lambda first, got, expected: first in ("expect", "if") and got == "EQUAL",
        "'=' gives a value, '==' compares",
    ),
    (
        lambda first, got, expected: (
            first in ("tile", "replicate", "stop", "share") and got == "EQUAL"
        ),
        "what to act on comes before the options: tile NAME dim=… axis=…",
    ),
    (
        lambda first, got, expected: first == "else",
        "`else` goes on the line of the '}' before it",
    ),
)
"""Slips that deserve their own words, by first word of the statement, token found and expected."""


def _literals(expected: set[str]) -> list[str]:
    words = {name.lower() for name in expected if name.lower() in KEYWORDS}
    if "ACTION" in expected:
        words |= {"tile", "replicate", "stop", "share"}
    return sorted(words)


def _list(expected: set[str]) -> str:
    """What would be right, in a few words; expression operators are left out as obvious."""
    if {"ACTION", "NAME"} <= expected and "NUMBER" not in expected:
        return "a statement"
    obvious = {"SUM", "PRODUCT", "AND", "OR", "COMPARE"}
    if {"NUMBER", "STRING", "NAME", "LSQB"} <= expected:
        closers = sorted(expected & {"RPAR", "RSQB"})
        return " or ".join(["a value", *(_WORDS[name] for name in closers)])
    shown = expected - obvious or expected
    words = [
        _WORDS.get(name, repr(name.lower()))
        for name in sorted(shown, key=lambda n: (_ORDER.index(n) if n in _ORDER else 99, n))
        if name != "$END" or "_NL" not in shown
    ]
    return ", ".join(words[:-1]) + (" or " if len(words) > 1 else "") + words[-1]


def _word_at(text: str, offset: int) -> str:
    end = offset
    while end < len(text) and (text[end].isalnum() or text[end] in "_."):
        end += 1
    return text[offset:end]


def _first_word(text: str, offset: int) -> tuple[str, int]:
    """The first word of the statement around `offset`, and where it is."""
    start = max(text.rfind(mark, 0, offset) for mark in "\n;{") + 1
    while start < offset and text[start] in " \t":
        start += 1
    return _word_at(text, start), start


def _unclosed(text: str, offset: int) -> int | None:
    """Where the last bracket that is still open at `offset` is."""
    stack: list[int] = []
    quote = ""
    position = 0
    while position < offset:
        character = text[position]
        if quote:
            quote = "" if character in (quote, "\n") else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            position = text.find("\n", position)
            if position < 0:
                break
        elif character in "([{":
            stack.append(position)
        elif character in ")]}" and stack:
            stack.pop()
        position += 1
    return stack[-1] if stack else None
