"""What can go wrong when a program is interpreted."""

from __future__ import annotations

from ..partir_dialect.errors import PartirError


class InterpreterError(PartirError):
    """A program that cannot be interpreted: an op without a meaning here, an input of the wrong
    shape, a custom call that nobody knows."""


class DeadlockError(InterpreterError):
    """Devices of one collective group that do not all arrive at the collective."""

    exit_status = 1
