"""How is the linearity column written? Short names for the common rows."""

from __future__ import annotations

from collections.abc import Iterable

from .base import REDUCERS, Linearity

ADD = frozenset({"add"})
EVERY = REDUCERS


def single(operands: Iterable[int], reducers: frozenset[str]) -> Linearity:
    """Each of the operands may be partial alone, the rest being equal on all devices."""
    return Linearity(frozenset(operands), False, reducers)


def joint(operands: Iterable[int], reducers: frozenset[str]) -> Linearity:
    """All of the operands must be partial together."""
    return Linearity(frozenset(operands), True, reducers)
