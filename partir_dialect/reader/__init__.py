"""What does a StableHLO text say? `read_module` gives the answer as xDSL IR.

`scanner` moves over the text, `types`, `dense` and `attributes` read what stands for itself,
`values` keeps names, `operations` reads the generic form, `pretty` and `special` the pretty
one, `templates` makes an op again whose line has been read before, and `verify` says where in
the text an op is at fault.
"""

from __future__ import annotations

from .module import read_module
from .verify import verify_module

__all__ = ["read_module", "verify_module"]
