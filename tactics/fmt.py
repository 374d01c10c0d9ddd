"""How should a script look? One layout for every script that says the same; comments stay.

Works on the tokens, so nothing that was written is lost: line breaks between statements stay (at
most one empty line in a row), spacing and indentation are made anew, an argument list that was
broken over lines stays broken, one argument a line. Formatting a formatted script changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from lark import Token

from .parser import tokens

INDENT = "  "
_OPEN = {"LPAR", "LSQB", "LBRACE"}
_CLOSE = {"RPAR", "RSQB", "RBRACE"}
_NO_SPACE_BEFORE = {"COMMA", "RPAR", "RSQB"}
_NO_SPACE_AFTER = {"LPAR", "LSQB"}
_WORDS = {"NAME", "PATTERN"}


def fmt(text: str, filename: str = "<string>") -> str:
    """The formatted script; raises `TacticError` if the text does not parse."""
    return _Layout(text).run(tokens(text, filename))


@dataclass
class _Layout:
    text: str
    lines: list[str] = field(default_factory=list[str])
    line: str = ""
    depth: int = 0
    stack: list[str] = field(default_factory=list[str])
    broken: list[bool] = field(default_factory=list[bool])
    previous: Token | None = None
    unary: bool = False
    last_item: bool = False
    breaks: set[int] = field(default_factory=set[int])

    def run(self, stream: list[Token]) -> str:
        self.breaks = _broken(stream, self.text)
        for index, token in enumerate(stream):
            following = stream[index + 1] if index + 1 < len(stream) else None
            self.last_item = token.type == "COMMENT" and _after_comments(stream, index) in _CLOSE
            self.put(token, following)
        self.flush()
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        while self.lines and not self.lines[0]:
            self.lines.pop(0)
        return "\n".join(self.lines) + ("\n" if self.lines else "")

    # --- lines ----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Ends the line, if there is anything on it."""
        if self.line.strip():
            self.lines.append(self.line.rstrip())
        self.line = ""

    def blank(self) -> None:
        """One empty line, never two, never first in a block."""
        if self.lines and self.lines[-1] and not self.lines[-1].endswith(("{", "(", "[")):
            self.lines.append("")

    def gap(self, token: Token) -> str:
        """The text between the token before and this one."""
        end = self.previous.end_pos if self.previous is not None else 0
        if self.previous is not None and self.previous.type == "COMMENT":
            end = (self.previous.start_pos or 0) + len(self.previous)
        return self.text[end or 0 : token.start_pos or 0]

    # --- tokens ---------------------------------------------------------------------------------

    def put(self, token: Token, following: Token | None) -> None:
        if token.type == "_NL":
            self.end_of_line(token)
            return
        gap = self.gap(token)
        starts_line = self.previous is None or "\n" in gap or self.previous.type == "_NL"
        if token.type == "COMMENT":
            self.comment(token, starts_line, gap)
        else:
            self.word(token, gap, following)
        self.previous = token

    def end_of_line(self, token: Token) -> None:
        self.flush()
        if token.count("\n") > 1:
            self.blank()
        self.previous = token

    def comment(self, token: Token, own_line: bool, gap: str) -> None:
        text = str(token).rstrip()
        if self.last_item and self.broken and self.broken[-1]:
            self.end_item()
        if own_line:
            self.flush()
            if gap.count("\n") > 1:
                self.blank()
            self.lines.append(INDENT * self.depth + text)
        else:
            self.line = (self.line or INDENT * self.depth).rstrip() + "  " + text
            self.flush()

    def word(self, token: Token, gap: str, following: Token | None) -> None:
        if token.type in _CLOSE:
            self.close(token)
            return
        inside = self.broken[-1] if self.broken else False
        after_comment = self.previous is not None and self.previous.type == "COMMENT"
        fresh = not self.line
        if fresh:
            if gap.count("\n") > 1 and (after_comment or not inside):
                self.blank()
            self.line = INDENT * self.depth
        elif self.spaced(token):
            self.line += " "
        self.line += str(token)
        self.unary = token.type == "SUM" and self.is_unary(fresh)
        if token.type in _OPEN:
            self.open(token, following)
        elif token.type == "COMMA" and inside:
            self.after_comma(token, following)

    def after_comma(self, token: Token, following: Token | None) -> None:
        """In a broken list every item has its line; a comment behind the comma stays behind it."""
        if following is not None and following.type == "COMMENT":
            between = self.text[token.end_pos or 0 : following.start_pos or 0]
            if "\n" not in between:
                return
        self.flush()

    def open(self, token: Token, following: Token | None) -> None:
        """A bracket whose content was broken over lines, or a body with anything in it, indents."""
        broken = (token.start_pos or 0) in self.breaks
        self.stack.append(token.type + ("+" if broken else ""))
        self.broken.append(broken and token.type != "LBRACE")
        if broken:
            self.depth += 1
            behind = self.text[token.end_pos or 0 : (following.start_pos or 0) if following else 0]
            if following is None or following.type != "COMMENT" or "\n" in behind:
                self.flush()

    def close(self, token: Token) -> None:
        opened = self.stack.pop()
        was_broken = self.broken.pop()
        if opened.endswith("+"):
            if was_broken:
                self.end_item()
            self.flush()
            self.depth -= 1
            while self.lines and not self.lines[-1]:
                self.lines.pop()
            self.line = INDENT * self.depth
        elif not self.line:
            self.line = INDENT * self.depth
        self.line += str(token)
        self.unary = False

    def end_item(self) -> None:
        """The comma behind the last item of a broken list."""
        if self.line.strip() and not self.line.rstrip().endswith((",", "(", "[")):
            self.line += ","

    def is_unary(self, fresh: bool) -> bool:
        before = self.previous
        return (
            fresh
            or before is None
            or before.type
            in ("EQUAL", "LPAR", "LSQB", "COMMA", "COMPARE", "SUM", "PRODUCT", "AND", "OR", "NOT")
            or before.type in ("EXPECT", "IF", "LET")
        )

    def spaced(self, token: Token) -> bool:
        """Whether a space goes between the token before and this one."""
        before = self.previous
        assert before is not None
        if token.type in _NO_SPACE_BEFORE or before.type in _NO_SPACE_AFTER or self.unary:
            return False
        if token.type == "LPAR" and before.type in _WORDS:
            return False
        if "EQUAL" in (token.type, before.type):
            return self.in_let()
        return True

    def in_let(self) -> bool:
        """`let x = 1` has spaces around its `=`, `dim=1` has none."""
        return self.line.strip().startswith("let ") and not any(
            opened.startswith(("LPAR", "LSQB")) for opened in self.stack
        )


def _after_comments(stream: list[Token], index: int) -> str:
    """The type of the next token that is no comment."""
    return next((t.type for t in islice(stream, index + 1, None) if t.type != "COMMENT"), "")


def _broken(stream: list[Token], text: str) -> set[int]:
    """Where the brackets begin whose content spans lines, and the bodies that are not empty."""
    found: set[int] = set()
    opened: list[Token] = []
    previous: Token | None = None
    for token in stream:
        if token.type in _OPEN:
            opened.append(token)
        elif token.type in _CLOSE:
            start = opened.pop()
            inside = text[start.end_pos or 0 : token.start_pos or 0]
            empty = previous is start or not inside.strip()
            if not empty and (start.type == "LBRACE" or "\n" in inside):
                found.add(start.start_pos or 0)
        previous = token
    return found
