"""What does a StableHLO text say? `read_module` gives the answer as xDSL IR.

`scanner` moves over the text, `types`, `dense` and `attributes` read what stands for itself,
`values` keeps names, `operations` reads the generic form, `pretty` and `special` the pretty
one, and `templates` makes an op again whose line has been read before.
"""

from __future__ import annotations

from .module import read_module

__all__ = ["read_module"]
