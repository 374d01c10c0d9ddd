"""How is an op written for people?"""

from __future__ import annotations

from .generic import GenericPrinter


class PrettyPrinter(GenericPrinter):
    """Writes the pretty form."""
