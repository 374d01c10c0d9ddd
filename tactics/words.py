"""Which words does the language keep for itself?"""

from __future__ import annotations

KEYWORDS = (
    "mesh",
    "device",
    "import",
    "include",
    "tactic",
    "expect",
    "let",
    "if",
    "else",
    "for",
    "in",
    "tile",
    "replicate",
    "stop",
    "share",
    "and",
    "or",
    "not",
    "true",
    "false",
    "none",
    "op",
    "result",
    "of",
    "using",
    "uses",
)
STATEMENTS = (*KEYWORDS[:8], "for", "tile", "replicate", "stop", "share")
