"""Where do results go, so that nothing half-written is ever left and a bad path is known early?

An output is opened before the work: a temporary file beside the target, moved onto it at the end.
What is no regular file (a terminal, `/dev/null`, a pipe) is written in place.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..partir_dialect.errors import PartirError

STANDARD = "-"


class OutputFile:
    """One file to come. `write` gives its text, which is there, whole, once `finish` is called."""

    def __init__(self, path: str) -> None:
        """Raises `PartirError` if the file cannot be written."""
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._temporary: Path | None = None
        self._text: str | None = None
        if path == STANDARD:
            return
        try:
            if self._target.is_dir():
                raise IsADirectoryError("Is a directory")
            if self._in_place():
                with self._target.open("a"):
                    return
            if self._target.exists():
                with self._target.open("a"):  # a read-only file stays as it is
                    pass
            handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=".partir-")
            os.close(handle)
            self._temporary = Path(name)
        except OSError as error:
            raise self._fault(error) from error

    def _in_place(self) -> bool:
        return self._target.exists() and not self._target.is_file()

    def _fault(self, error: OSError) -> PartirError:
        return PartirError(f"cannot write the output: {self.path!r}: {error.strerror or error}")

    def write(self, text: str) -> None:
        """Sets the text of the file, with a line end at its end."""
        self._text = text if text.endswith("\n") else text + "\n"

    def finish(self) -> None:
        """Puts the file in its place; without a `write` there is none. Raises `PartirError`."""
        if self._text is None:
            self.discard()
        elif self.path == STANDARD:
            sys.stdout.write(self._text)
            sys.stdout.flush()
        else:
            try:
                self._put(self._text)
            except OSError as error:
                self.discard()
                raise self._fault(error) from error

    def _put(self, text: str) -> None:
        if self._temporary is None:
            with self._target.open("w") as stream:
                stream.write(text)
            return
        with self._temporary.open("w") as stream:
            stream.write(text)
        if self._target.exists():
            mode = self._target.stat().st_mode & 0o777
        else:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        self._temporary.chmod(mode)
        self._temporary.replace(self._target)
        self._temporary = None

    def discard(self) -> None:
        """Leaves the target as it was."""
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            self._temporary = None


@contextmanager
def output_files(*paths: str | None) -> Generator[list[OutputFile | None]]:
    """Opens the outputs that are named; all are put in place at the end, or none on an error."""
    files: list[OutputFile | None] = []
    try:
        for path in paths:
            files.append(None if path is None else OutputFile(path))
        yield files
        for file in files:
            if file is not None:
                file.finish()
    finally:
        for file in files:
            if file is not None:
                file.discard()
