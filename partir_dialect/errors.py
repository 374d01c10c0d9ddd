"""What can go wrong: one error hierarchy that carries data first and text second.

Every fault of the user's input is a `PartirError` (or xDSL's `VerifyException` and
`PassFailedException` where xDSL calls us); a fault of ours is an assertion.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A place in a text: file, 1-based line and column, and the text of that line."""

    file: str
    line: int
    column: int
    text: str = ""
    length: int = 1

    @classmethod
    def at(cls, file: str, source: str, offset: int, length: int = 1) -> Span:
        """The span that begins `offset` characters into `source`."""
        offset = max(0, min(offset, len(source)))
        start = source.rfind("\n", 0, offset) + 1
        end = source.find("\n", offset)
        line = source[start : end if end >= 0 else len(source)]
        return cls(file, source.count("\n", 0, offset) + 1, offset - start + 1, line, length)


class PartirError(Exception):
    """A fault in what the user gave, with where it is and what would be valid there.

    `message` ends with the offending value; `candidates` are the valid values, of which the
    nearest is offered as "did you mean"; `span` says where, if a text is at fault.
    """

    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        name: str | None = None,
        candidates: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.name = name
        self.candidates: Sequence[str] = tuple(candidates)

    @property
    def nearest(self) -> str | None:
        """The candidate most like `name`, if any is close."""
        if self.name is None:
            return None
        close = difflib.get_close_matches(self.name, self.candidates, n=1, cutoff=0.5)
        return close[0] if close else None

    def render(self) -> str:
        """`FILE:LINE:COL: error: …`, the line and a caret; without a span, `error: …`."""
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        if self.span is None:
            return f"error: {self.message}{hint}"
        head = f"{self.span.file}:{self.span.line}:{self.span.column}: error: {self.message}{hint}"
        if not self.span.text:
            return head
        column = self.span.column
        text = self.span.text
        if len(text) > 160:  # a line of a module can be megabytes long
            cut = max(0, column - 80)
            text, column = text[cut : cut + 160], column - cut
        caret = " " * (column - 1) + "^" + "~" * (min(self.span.length, 80) - 1)
        return f"{head}\n{text}\n{caret}"

    def __str__(self) -> str:
        return self.render()


class ReadError(PartirError):
    """A module text that cannot be read."""


class MeshError(PartirError):
    """A mesh that cannot be: a repeated axis, a size below one, an unknown name."""


class RuleError(PartirError):
    """A tile-mapping rule that contradicts the op's types."""


class TacticError(PartirError):
    """A tactic script that cannot be parsed, checked or applied."""


class LoweringError(PartirError):
    """A state that the lowering has to refuse (for example an uneven tile it cannot pad)."""


class MismatchError(PartirError):
    """The partitioned program computes something else than the global one."""

    exit_status = 1


class ExpectationError(PartirError):
    """An `expect` clause that does not hold."""

    exit_status = 1
