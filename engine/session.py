"""How decisions are made: a session holds a state and offers the actions that tactics are made of.

`begin` opens a tactic statement; `tile`, `replicate` and `stop` act; `propagate` runs to the fixed
point and reports what was inferred. A dimension that only a part of an axis can divide refines the
mesh: the axis becomes atoms `model.0`, `model.1`, and acting on `model` means acting on all of them
(rule 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.placement import Placement
from .graph import ARGUMENT, Graph
from .plan import Plan, plan
from .propagate import Conflict, conflicts, propagate
from .state import ANY, NONE, State


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action: `done`, `already` (it held before) or `refused`, and why."""

    status: str
    reason: str = ""

    @property
    def done(self) -> bool:
        return self.status == "done"


@dataclass(frozen=True, slots=True)
class Propagation:
    """What a propagation did: newly placed arguments as (argument index, dimension, axis name), how
    many ops were decided, and the conflicts that are open now."""

    inferred: tuple[tuple[int, int, str], ...]
    decisions: int
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One tactic statement as it was begun: its text and where it is written (`file:line:col`)."""

    tactic: str
    where: str


@dataclass
class Session:
    """A graph, a mesh and the decisions so far. Axis names are those of the mesh that was given."""

    graph: Graph
    mesh: Mesh
    statements: list[Statement] = field(default_factory=list[Statement])

    def __post_init__(self) -> None:
        self.state = State(self.graph, self.mesh)
        self.atoms: dict[str, tuple[str, ...]] = {name: (name,) for name in self.mesh.names}
        for (value, axis), replicate in self.graph.marks.items():
            if axis in self.mesh:
                self.state.flag(value, self.state.axes.index(axis), replicate=replicate)
        self._started = self.state.mark()
        self._products = any(
            len(made_of) > 1
            for shape in {id(s): s for s in self.graph.op_shapes}.values()
            for table in (*shape.inputs, *shape.outputs)
            for made_of in table
        )

    # --- actions ------------------------------------------------------------------------------

    def begin(self, tactic: str, where: str = "") -> None:
        """Opens a statement; what follows up to the next `begin` is recorded as its doing."""
        self.statements.append(Statement(tactic, where))
        self.state.current_step = len(self.statements) - 1
        self._started = self.state.mark()

    def tile(self, value: int, dim: int, axis: str) -> Outcome:
        """Tiles dimension `dim` of the value along the axis, at its producer."""
        shape = self.graph.shapes[value]
        if not -len(shape) <= dim < len(shape):
            return Outcome("refused", f"it has no dimension {dim}, its rank is {len(shape)}")
        dim %= len(shape)
        before = self._tiled_on(value, axis)
        if before is not None:
            if before == dim:
                return Outcome(
                    "already", f"{axis} tiles dimension {dim} already{self._by(value, axis)}"
                )
            return Outcome(
                "refused",
                f"{axis} tiles dimension {before} of it{self._by(value, axis)}"
                if before >= 0
                else f"it was decided to be whole along {axis}{self._by(value, axis)}",
            )
        return self._tile_atoms(value, dim, axis)

    def _tile_atoms(self, value: int, dim: int, axis: str) -> Outcome:
        op, r = self.graph.producer[value]
        slot = self.graph.slots[op]
        mark = self.state.mark()
        for atom in self._indices(axis):
            made_of = self.graph.op_shapes[op].outputs[r][dim]
            factor = self.state.factor_for(op, made_of, atom)
            if factor < 0 or self.state.entry[atom][slot] != NONE:
                self.state.undo(mark)
                return Outcome("refused", self._why_not(value, dim, axis))
            self.state.decide(slot, atom, factor)
        return Outcome("done")

    def replicate(self, value: int, axis: str) -> Outcome:
        """Decides that all devices along the axis hold the value whole."""
        op, _ = self.graph.producer[value]
        slot = self.graph.slots[op]
        status = "already"
        for atom in self._indices(axis):
            if self.graph.kinds[op] == ARGUMENT:
                entry = self.state.entry[atom][slot]
                if entry >= 0:
                    return Outcome("refused", f"{axis} tiles it{self._by(value, axis)}")
                if entry == NONE:
                    self.state.decide(slot, atom, ANY)
                    status = "done"
            elif value not in self.state.barrier[atom]:
                self.state.flag(value, atom, replicate=True)
                status = "done"
        return Outcome(status, "" if status == "done" else f"it is whole along {axis} already")

    def stop(self, value: int, axis: str) -> Outcome:
        """Lets the axis not propagate through the value, in either direction."""
        status = "already"
        for atom in self._indices(axis):
            if value not in self.state.barrier[atom]:
                self.state.flag(value, atom, replicate=False)
                status = "done"
        return Outcome(status, "" if status == "done" else f"{axis} stops there already")

    def gather_once(self, value: int) -> Outcome:
        """Policy: the gathers of this parameter are shared by all its uses."""
        if value in self.state.once:
            return Outcome("already", "its gathers are shared already")
        self.state.gather_once(value)
        return Outcome("done")

    def propagate(self) -> Propagation:
        """Runs every axis that was acted on to its fixed point; refines the mesh where that
        helps."""
        decisions = 0
        pending = {axis for _, axis in self.state.changed_since(self._started)}
        while pending:
            made = 0
            for axis in sorted(pending):
                made += propagate(self.state, axis)
            decisions += made
            if self._refine():
                pending = set(range(len(self.state.axes)))
            elif not made:
                break
            elif self._products:  # a filled major factor may open the next one to another axis
                pending = {axis for axis, _ in enumerate(self.state.axes) if self._is_used(axis)}
            elif len(pending) == 1:
                break
        return Propagation(self._inferred(), decisions, tuple(self.open_conflicts()))

    def refine(self, axis: str, parts: tuple[int, ...]) -> None:
        """Makes the axis atoms of these sizes, major to minor, before anything is decided."""
        for part in parts[:-1]:
            self._split(self._indices(axis)[-1], part)

    # --- questions ----------------------------------------------------------------------------

    def open_conflicts(self) -> list[Conflict]:
        """Ops for which two factors are possible, over all axes."""
        return [c for axis in range(len(self.state.axes)) for c in conflicts(self.state, axis)]

    def placement(self, value: int) -> Placement:
        """The placement of the value as its producer makes it (before any reshard)."""
        state, graph = self.state, self.graph
        op, r = graph.producer[value]
        slot = graph.slots[op]
        dims: list[tuple[str, ...]] = []
        for made_of in graph.op_shapes[op].outputs[r]:
            dims.append(tuple(state.axes[a] for f in made_of for a in state.axes_on(slot, f)))
        return Placement(tuple(dims))

    def tiled_dim(self, value: int, axis: str) -> int | None:
        """The dimension of the value that the axis (its first atom) tiles, or None."""
        d = self.state.tile[self._indices(axis)[0]][value]
        return d if d >= 0 else None

    def local_shape(self, value: int) -> tuple[int, ...]:
        """The shape of one device's tile of the value."""
        return self.placement(value).local_shape(self.graph.shapes[value], self.state.mesh)

    def plan(self) -> Plan:
        """The plan of the present state."""
        return plan(self.state)

    # --- inside -------------------------------------------------------------------------------

    def _indices(self, axis: str) -> list[int]:
        self.mesh.size(axis)
        return [self.state.axes.index(atom) for atom in self.atoms[axis]]

    def _is_used(self, axis: int) -> bool:
        return any(a == axis for _, a in self.state.changed_since(0))

    def _tiled_on(self, value: int, axis: str) -> int | None:
        """The dimension that the axis tiles; -1 if decided otherwise; None if nothing is
        decided."""
        slot = self.graph.slots[self.graph.producer[value][0]]
        for atom in self._indices(axis):
            if self.state.entry[atom][slot] != NONE:
                return self.state.tile[atom][value]
        return None

    def _by(self, value: int, axis: str) -> str:
        """`, decided by TACTIC` for messages."""
        slot = self.graph.slots[self.graph.producer[value][0]]
        for atom in self._indices(axis):
            step = self.state.step.get((slot, atom))
            if step is not None and step < len(self.statements):
                statement = self.statements[step]
                where = f" ({statement.where})" if statement.where else ""
                return f", decided by {statement.tactic}{where}"
        return ""

    def _why_not(self, value: int, dim: int, axis: str) -> str:
        graph = self.graph
        op, r = graph.producer[value]
        size = self.local_shape(value)[dim]
        made_of = graph.op_shapes[op].outputs[r][dim]
        usable = [f for f in made_of if graph.op_shapes[op].usable[f]]
        if size % self.mesh.size(axis):
            parts = self.mesh.size(axis)
            return f"its local size {size} in dimension {dim} does not divide by {axis}={parts}"
        if not usable:
            return f"{graph.kinds[op]} cannot be tiled along dimension {dim}"
        return f"dimension {dim} cannot take {axis}={self.mesh.size(axis)} there"

    def _inferred(self) -> tuple[tuple[int, int, str], ...]:
        """Arguments that this statement placed (asked for and inferred), once for each atom."""
        changed = set(self.state.changed_since(self._started))
        found: list[tuple[int, int, str]] = []
        for index, argument in enumerate(self.graph.arguments):
            for axis, name in enumerate(self.state.axes):
                if (argument.op, axis) in changed:
                    d = self.state.tile[axis][argument.value]
                    if d >= 0:
                        found.append((index, d, name))
        return tuple(found)

    def _refine(self) -> bool:
        """Splits one axis in two where a product dimension needs it; says whether it did."""
        for (op, axis), part in list(self.state.splits.items()):
            slot = self.graph.slots[op]
            if self.state.entry[axis][slot] == NONE and 1 < part < self.state.sizes[axis]:
                self._split(axis, part)
                return True
        self.state.splits.clear()
        return False

    def _split(self, axis: int, part: int) -> None:
        """Rebuilds the state with `axis` as two atoms of sizes `part` and the rest."""
        old = self.state
        name, size = old.axes[axis], old.sizes[axis]
        root = next(root for root, atoms in self.atoms.items() if name in atoms)
        position = self.atoms[root].index(name)
        sizes = [old.sizes[old.axes.index(atom)] for atom in self.atoms[root]]
        sizes[position : position + 1] = [part, size // part]
        names = tuple(f"{root}.{i}" for i in range(len(sizes)))
        pairs: list[tuple[str, int]] = []
        for other in self.mesh.names:
            if other == root:
                pairs.extend(zip(names, sizes, strict=True))
            else:
                pairs.extend((atom, old.sizes[old.axes.index(atom)]) for atom in self.atoms[other])
        mapping: dict[int, tuple[int, ...]] = {}
        fresh = [pair[0] for pair in pairs]
        for index, atom in enumerate(old.axes):
            if index == axis:
                mapping[index] = (fresh.index(names[position]), fresh.index(names[position + 1]))
            elif atom in self.atoms[root]:
                old_at = self.atoms[root].index(atom)
                mapping[index] = (fresh.index(names[old_at + (old_at > position)]),)
            else:
                mapping[index] = (fresh.index(atom),)
        self.atoms[root] = names
        self.state = old.refined(Mesh(pairs), mapping)
        self._started = self.state.mark_of_step(self.state.current_step)
