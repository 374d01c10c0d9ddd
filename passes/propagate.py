"""`partir-propagate`: every axis runs from the nests that there are to its fixed point.

Precondition: nest form. Postcondition: nest form with the inferred entries; what two factors are
possible for stays as it was (a conflict, which `partir explain --conflicts` shows).

```mlir
%x … {partir.nest = #partir.nest<[batch: i]>}
%0 = stablehlo.tanh %x {partir.nest = #partir.nest<[]>} : tensor<256x8xf32>
```
becomes
```mlir
%0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<256x8xf32>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .nest_state import store
from .tile import open_session


@dataclass(frozen=True)
class PropagatePass(ModulePass):
    """Propagates all axes that some nest names."""

    name = "partir-propagate"

    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        session.propagate()
        store(session, source)
