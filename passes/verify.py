"""Is the module sound? Its ops by their own verifiers; in nest form, every nest as well.

Precondition and postcondition: the module, unchanged. Fails with the first op at fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .nest_form import is_nest_form, verify_nests


@dataclass(frozen=True)
class VerifyPass(ModulePass):
    """Verifies the module: see the module's docstring."""

    name = "partir-verify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.verify()
        if is_nest_form(op):
            verify_nests(op)
