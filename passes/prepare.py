"""How is a program made ready for partitioning? One function, nothing twice, nothing unused.

Precondition: any valid module. Postcondition: public functions call nothing; no private function
is left that none names; equal ops are merged, except views of one parameter, generated values,
and whatever has an effect or a generator's state; every generated value has one use; argument and
result attributes and all locations are as before.

```mlir
%c = stablehlo.constant dense<2.0> : tensor<f32>
%0 = func.call @double(%x, %c) : …
%1 = func.call @double(%x, %c) : …
%2 = stablehlo.add %0, %1 : …
```
becomes one `multiply` (the body of `@double`), with its own constant, and the `add`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..partir_dialect.errors import PartirError
from .canonicalise import drop_identities
from .cse import merge_equal_ops
from .dce import drop_dead_ops
from .generated import give_each_use_its_own
from .inline import functions, inline_calls


def prepare(module: ModuleOp) -> None:
    """Prepares `module` in place; raises `PartirError` for a call that cannot be inlined."""
    inline_calls(module)
    drop_identities(module)
    drop_dead_ops(module)
    for func in functions(module).values():
        merge_equal_ops(func)
    give_each_use_its_own(module)
    drop_dead_ops(module)


@dataclass(frozen=True)
class PreparePass(ModulePass):
    """Inlines, merges, drops and canonicalises: see the module."""

    name = "partir-prepare"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            prepare(op)
        except PartirError as error:
            raise PassFailedException(error.message) from error
