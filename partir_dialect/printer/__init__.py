"""How is a module written? `print_module` gives generic or pretty text that MLIR reads.

`attributes` writes types and attributes, each once; `locations` writes where ops come from;
`generic` and `pretty` write ops.
"""

from __future__ import annotations

from .module import print_module

__all__ = ["print_module"]
