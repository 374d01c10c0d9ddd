"""`partir-replicate` and `partir-stop`: what a value says to the axes that come by.

Precondition and postcondition as for `partir-tile`. `partir-replicate` makes a value whole along an
axis (an argument gets the entry `axis: any`, an intermediate value a `partir.replicate` behind it);
`partir-stop` puts a `partir.stop` behind it, which lets no evidence pass.

```mlir
%k = stablehlo.tanh %x : tensor<64x16xf32>
```
becomes, with `partir-replicate{value=k axis=model}`,
```mlir
%k = stablehlo.tanh %x {partir.nest = #partir.nest<[]>} : tensor<64x16xf32>
%0 = partir.replicate ["model"] %k {partir.nest = #partir.nest<[]>} : tensor<64x16xf32>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .nest_state import store
from .tile import expect_done, find_value, open_session


@dataclass(frozen=True)
class ReplicatePass(ModulePass):
    """Makes `value` whole along `axis`."""

    name = "partir-replicate"

    value: str
    axis: str
    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        value = find_value(session, source, self.value)
        outcome = session.replicate(value, self.axis)
        expect_done(outcome, f"replicate {self.value} axis={self.axis}")
        store(session, source)


@dataclass(frozen=True)
class StopPass(ModulePass):
    """Lets `axis` not propagate through `value`."""

    name = "partir-stop"

    value: str
    axis: str
    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        value = find_value(session, source, self.value)
        expect_done(session.stop(value, self.axis), f"stop {self.value} axis={self.axis}")
        store(session, source)
