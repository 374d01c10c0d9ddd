"""Where are we in the text, and what comes next?

A cursor over the whole text: whitespace and comments are skipped before every token, and
every failure is a `ReadError` that knows its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from ..errors import ReadError, Span

_SKIP = re.compile(r"(?a)[ \t\r\n]*(?://[^\n]*[ \t\r\n]*)*")
_WORD = re.compile(r"(?a)[A-Za-z_][\w$.]*")
_PLAIN_WORD = re.compile(r"(?a)[A-Za-z_][\w$]*")
_INTEGER = re.compile(r"(?a)-?(?:0x[0-9a-fA-F]+|\d+)")
_STRING = re.compile(r'(?a)"([^"\\\n]*(?:\\[^\n][^"\\\n]*)*)"')
_ESCAPE = re.compile(rb'\\(?:([0-9a-fA-F]{2})|([nt"\\]))')
_BRACKETS = re.compile(r'(?a)"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|->|[<>()\[\]{}"]')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_NAMED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_MAX_DEPTH = 96

_T = TypeVar("_T")


def unescape(body: str) -> str:
    """The characters that the inside of an MLIR string literal stands for.

    `\\22` is a byte in hexadecimal; bytes that are no UTF-8 are kept as surrogate escapes.
    """
    if "\\" not in body:
        return body
    raw = body.encode("utf-8", "surrogateescape")
    raw = _ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else _NAMED[m[2]], raw)
    return raw.decode("utf-8", "surrogateescape")


class Scanner:
    """A cursor over `text`; `pos` is the offset of the next character not yet read."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.file = filename
        self.pos = 0
        self._depth = 0

    # Failing

    def fail(
        self, message: str, at: int | None = None, *, name: str | None = None, **hint: list[str]
    ) -> NoReturn:
        """Raises `ReadError` at an offset (default: the next token)."""
        if at is None:
            self.skip()
            at = self.pos
        span = Span.at(self.file, self.text, at)
        raise ReadError(message, span=span, name=name, candidates=hint.get("candidates", []))

    def found(self) -> str:
        """The next token, for a message."""
        self.skip()
        if self.pos >= len(self.text):
            return "end of text"
        match = re.compile(r'(?a)[%@#!^]?[\w$.-]+|"[^"\n]{0,40}"?|->|\S').match(self.text, self.pos)
        return match[0][:60] if match else self.text[self.pos]

    def nested(self, parse: Callable[[], _T]) -> _T:
        """Runs `parse` one level deeper; text nested too deeply is an error, not a crash."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"nested too deeply, the limit is: {_MAX_DEPTH}")
        result = parse()
        self._depth -= 1
        return result

    # Moving

    def skip(self) -> None:
        """Moves past whitespace and comments."""
        match = _SKIP.match(self.text, self.pos)
        assert match is not None
        self.pos = match.end()

    def at_end(self) -> bool:
        self.skip()
        return self.pos >= len(self.text)

    def peek(self, token: str) -> bool:
        """Whether these characters come next."""
        self.skip()
        return self.text.startswith(token, self.pos)

    def accept(self, token: str) -> bool:
        """Reads these characters if they come next."""
        self.skip()
        if self.text.startswith(token, self.pos):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str, context: str = "") -> None:
        if not self.accept(token):
            where = f" {context}" if context else ""
            self.fail(f"expected '{token}'{where}, got: {self.found()}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Reads what the pattern matches here, if it does."""
        self.skip()
        if match := pattern.match(self.text, self.pos):
            self.pos = match.end()
            return match
        return None

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        if match := self.match(pattern):
            return match
        self.fail(f"expected {what}, got: {self.found()}")

    # Tokens

    def peek_word(self) -> str:
        """The bare word that comes next, or an empty text."""
        self.skip()
        match = _PLAIN_WORD.match(self.text, self.pos)
        return match[0] if match else ""

    def accept_word(self, word: str) -> bool:
        if self.peek_word() == word:
            self.pos += len(word)
            return True
        return False

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            self.fail(f"expected '{word}', got: {self.found()}")

    def word(self, what: str = "a name") -> str:
        """A bare identifier, dots allowed."""
        return self.need(_WORD, what)[0]

    def plain_word(self, what: str = "a name") -> str:
        """A bare identifier without dots."""
        return self.need(_PLAIN_WORD, what)[0]

    def integer(self) -> int:
        text = self.need(_INTEGER, "an integer")[0]
        if len(text) > 400:
            self.fail("integer is too long", self.pos - len(text))
        return int(text, 0) if "x" in text else int(text)

    def string(self) -> str:
        """A string literal, unescaped."""
        return unescape(self.need(_STRING, "a string")[1])

    def comma_list(self, close: str, item: Callable[[], _T]) -> list[_T]:
        """`item, item, …` up to and with the closing bracket."""
        items: list[_T] = []
        if self.accept(close):
            return items
        while True:
            items.append(item())
            if self.accept(close):
                return items
            self.expect(",", f"or '{close}'")

    def balanced(self) -> str:
        """Reads one bracket and everything up to its partner, strings respected."""
        self.skip()
        start = self.pos
        stack: list[str] = []
        for match in _BRACKETS.finditer(self.text, start):
            token = match[0]
            if token in _CLOSING:
                stack.append(_CLOSING[token])
                continue
            if token == '"':
                self.fail("string is not closed", match.start())
            if token[0] == '"' or token == "->":
                continue
            if not stack or stack.pop() != token:
                self.fail(f"unbalanced bracket, got: {token}", match.start())
            if not stack:
                self.pos = match.end()
                return self.text[start : self.pos]
        self.fail("bracket is not closed", start)
