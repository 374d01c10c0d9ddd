"""`partir-tile`: tiles one dimension of a value along a mesh axis.

Precondition: a module that `partir-prepare` has prepared, with or without nests, and a mesh (the
module's own or the option's). Postcondition: nest form, with the decision; nothing is propagated.

```mlir
func.func @main(%x: tensor<256x8xf32>) …
```
becomes, with `partir-tile{value=x dim=0 axis=batch}`,
```mlir
func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}) …
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..engine.build import Source
from ..engine.session import Outcome, Session
from ..partir_dialect.errors import PartirError
from ..partir_dialect.mesh import Mesh
from .nest_state import load, store


def find_value(session: Session, source: Source, name: str) -> int:
    """The value of that name: the flat path of an argument, or the SSA name of any value."""
    for argument in session.graph.arguments:
        if argument.name == name:
            return argument.value
    hint = name.removeprefix("%")
    hints = {ssa.name_hint: number for number, ssa in source.values.items() if ssa.name_hint}
    if hint in hints:
        return hints[hint]
    names = [*(a.name for a in session.graph.arguments), *hints]
    error = PartirError(f"no such value: {name!r}", name=name, candidates=names)
    raise PassFailedException(error.render().removeprefix("error: "))


def open_session(module: ModuleOp, mesh: str | None) -> tuple[Session, Source]:
    """The session of a module, over its own mesh or the one of the option."""
    try:
        return load(module, Mesh.parse(mesh) if mesh else None)
    except PartirError as error:
        raise PassFailedException(error.render().removeprefix("error: ")) from error


def expect_done(outcome: Outcome, what: str) -> None:
    """Raises `PassFailedException` for an action that was refused."""
    if outcome.status == "refused":
        raise PassFailedException(f"cannot {what}: {outcome.reason}")


@dataclass(frozen=True)
class TilePass(ModulePass):
    """Tiles dimension `dim` of `value` along `axis`."""

    name = "partir-tile"

    value: str
    dim: int
    axis: str
    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        value = find_value(session, source, self.value)
        session.begin(f"tile {self.value} dim={self.dim} axis={self.axis}")
        try:
            outcome = session.tile(value, self.dim, self.axis)
        except PartirError as error:
            raise PassFailedException(error.render().removeprefix("error: ")) from error
        expect_done(outcome, f"tile {self.value} dim={self.dim} axis={self.axis}")
        store(session, source)
