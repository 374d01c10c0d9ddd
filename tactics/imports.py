"""What do `import` and `include` bring in? Definitions of another script, or all of its
statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..partir_dialect.errors import Span, TacticError
from . import syntax as s
from .parser import parse

Reader = Callable[[str], str]
"""The text of a file; raises `OSError` or `UnicodeDecodeError` if it cannot be read."""


def read_file(path: str) -> str:
    """The text of a file on disk."""
    return Path(path).read_text(encoding="utf-8")


def load(path: str, reader: Reader = read_file) -> s.Script:
    """The script in a file, with what it imports and includes; raises `TacticError`."""
    try:
        text = reader(path)
    except (OSError, UnicodeDecodeError) as error:
        raise TacticError(f"cannot read {path!r}: {_reason(error)}") from None
    return expand(parse(text, path), reader)


def expand(script: s.Script, reader: Reader = read_file) -> s.Script:
    """The script with every import and include replaced by what it brings in.

    Raises `TacticError` at the line that asks for a file that cannot be read or asks for itself.
    """
    if not any(isinstance(statement, s.Import | s.Include) for statement in script.statements):
        return script
    return s.Script(
        _expanded(script, reader, (script.file,)), script.file, script.source, script.doc
    )


def _expanded(
    script: s.Script, reader: Reader, open_files: tuple[str, ...]
) -> tuple[s.Statement, ...]:
    found: list[s.Statement] = []
    for statement in script.statements:
        if not isinstance(statement, s.Import | s.Include):
            found.append(statement)
            continue
        path = str(Path(script.file).parent / statement.path)
        if path in open_files:
            raise TacticError(f"{statement.path!r} asks for itself", span=statement.span)
        inner = _read(path, statement.path, statement.span, reader)
        statements = _expanded(inner, reader, (*open_files, path))
        if isinstance(statement, s.Import):
            statements = tuple(i for i in statements if isinstance(i, s.TacticDefinition | s.Let))
        found.extend(statements)
    return tuple(found)


def _read(path: str, written: str, span: Span, reader: Reader) -> s.Script:
    try:
        text = reader(path)
    except (OSError, UnicodeDecodeError) as error:
        raise TacticError(f"cannot read {written!r}: {_reason(error)}", span=span) from None
    return parse(text, path)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return error.strerror or str(error)
