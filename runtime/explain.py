"""Why is a value placed as it is, and where does each collective come from?

Everything is read off the state and the plan: which statement decided, what met, what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine.graph import ARGUMENT, RESULT
from ..engine.plan import Reshard
from ..engine.propagate import Conflict
from ..engine.state import ANY, NONE
from ..partir_dialect.errors import PartirError

if TYPE_CHECKING:
    from .partition import Partitioned

SHOWN_USES = 3


@dataclass(frozen=True)
class AxisStory:
    """One axis of one value: what it does there, and which statement decided it."""

    axis: str
    what: str
    because: str


@dataclass(frozen=True)
class ValueStory:
    """One argument or result: name, global and local shape, and each axis in turn."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    local: tuple[int, ...]
    axes: tuple[AxisStory, ...]
    collectives: tuple[CollectiveStory, ...]


@dataclass(frozen=True)
class CollectiveStory:
    """One collective: what it moves (bytes of the result on one device, for all executions), what
    it serves, and the statement whose decision made the placements differ."""

    kind: str
    axes: tuple[str, ...]
    value: str
    before: str
    after: str
    bytes: int
    count: int
    uses: tuple[str, ...]
    because: str
    fallback: bool


@dataclass(frozen=True)
class ConflictStory:
    """An op that an axis could tile in two ways; `sides` are the ways with who asks for each."""

    axis: str
    op: str
    sides: tuple[str, ...]


@dataclass(frozen=True)
class FallbackStory:
    """An operand gathered along an axis (bytes of the whole), its op not being tiled there."""

    axis: str
    op: str
    operand: str
    bytes: int


class Explainer:
    """Answers questions about one partitioned program."""

    def __init__(self, result: Partitioned) -> None:
        self.result = result
        self.session = result.session
        self.state = result.session.state
        self.graph = result.graph
        self.plan = result.plan

    # --- names ----------------------------------------------------------------------------------

    def op(self, op: int) -> str:
        """What to call an op: an argument's or result's name, else kind and location."""
        kind = self.graph.kinds[op]
        if kind == ARGUMENT:
            return next(a.name for a in self.graph.arguments if a.op == op)
        if kind == RESULT:
            return next(r.name for r in self.graph.outcomes if r.op == op)
        place = self.graph.locations[op]
        return f"{kind} at {place}" if place else kind

    def value(self, value: int) -> str:
        """What to call a value: its argument's name, else the op that makes it."""
        return self.op(self.graph.producer[value][0])

    def statement(self, index: int | None) -> str:
        """The statement of that number with its place."""
        statements = self.session.statements
        if index is None or not 0 <= index < len(statements):
            return "the program itself"
        found = statements[index]
        return f"{found.tactic} ({found.where})" if found.where else found.tactic

    # --- values ---------------------------------------------------------------------------------

    def named(self, pattern: str) -> list[ValueStory]:
        """The arguments and results that a pattern names. Raises `PartirError` if none."""
        from ..tactics.names import matching

        borders = [*self.graph.arguments, *self.graph.outcomes]
        locals_ = [*self.plan.arguments, *self.plan.results]
        names = [border.name for border in borders]
        found = matching(pattern, names)
        if not found:
            raise PartirError(
                f"no argument or result is called {pattern!r}", name=pattern, candidates=names
            )
        return [self._value(borders[i].name, borders[i].op, locals_[i]) for i in found]

    def _value(self, name: str, op: int, local: int) -> ValueStory:
        held = self.plan.values[local]
        value = held.value
        dims = {a: d for d, axes in enumerate(held.spot.dims) for a in axes}
        axes = tuple(self._axis(op, axis, dims.get(axis)) for axis in range(len(self.state.axes)))
        touching = [
            self._collective(reshard)
            for reshard in self._moving()
            if self.plan.values[reshard.source].value == value
        ]
        return ValueStory(
            name,
            self.graph.dtypes[value],
            self.graph.shapes[value],
            held.shape,
            axes,
            tuple(touching),
        )

    def _axis(self, op: int, axis: int, dim: int | None) -> AxisStory:
        slot = self.graph.slots[op]
        name = self.state.axes[axis]
        entry = self.state.entry[axis][slot]
        because = self.statement(self.state.step.get((slot, axis)))
        if dim is not None:
            return AxisStory(
                name, f"tiles dimension {dim}", f"{self._asked(op, axis)} by {because}"
            )
        if entry == ANY:
            return AxisStory(name, "whole", f"replicated by {because}")
        if entry != NONE:
            return AxisStory(name, "whole", f"the axis tiles its op otherwise, by {because}")
        for conflict in self.session.open_conflicts():
            if conflict.op == slot and conflict.axis == axis:
                return AxisStory(name, "whole", "two dimensions are possible (see --conflicts)")
        return AxisStory(name, "whole", "no tactic reaches it")

    def _asked(self, op: int, axis: int) -> str:
        """Whether a statement named the value itself or propagation brought the axis there."""
        slot = self.graph.slots[op]
        name = self.state.axes[axis]
        root = next(r for r, atoms in self.session.atoms.items() if name in atoms)
        step = self.state.step.get((slot, axis))
        if step is not None and step < len(self.result.steps):
            for asked in self.result.steps[step].asked:
                asked_slot = self.graph.slots[self.graph.producer[asked.value][0]]
                if asked_slot == slot and asked.axis == root:
                    return "asked for"
        return "inferred"

    # --- collectives ----------------------------------------------------------------------------

    def _moving(self) -> Iterator[Reshard]:
        return (step for step in self.plan.reshards if step.kind != "all_slice")

    def collectives(self) -> list[CollectiveStory]:
        """Every collective in schedule order; free slices are none."""
        return [self._collective(step) for step in self._moving()]

    def _collective(self, step: Reshard) -> CollectiveStory:
        source = self.plan.values[step.source].value
        uses = [self.op(op) for op, _ in step.uses]
        shown = uses[:SHOWN_USES]
        if len(uses) > SHOWN_USES:
            shown.append(f"{len(uses) - SHOWN_USES} more")
        return CollectiveStory(
            step.kind,
            tuple(self.plan.axes[axis] for axis in step.move.group),
            self.value(source),
            self._local(step.source),
            self._local(step.target),
            step.bytes * step.count,
            step.count,
            tuple(shown),
            self.statement(step.tactic),
            step.fallback,
        )

    def _local(self, local: int) -> str:
        held = self.plan.values[local]
        return f"{self.graph.dtypes[held.value]}{list(held.shape)} {self.plan.placement(local)}"

    # --- what did not work ----------------------------------------------------------------------

    def conflicts(self) -> list[ConflictStory]:
        """Every op that an axis could tile in two ways, with who asks for which."""
        return [self._conflict(conflict) for conflict in self.session.open_conflicts()]

    def _conflict(self, conflict: Conflict) -> ConflictStory:
        sides: dict[int, list[str]] = {}
        for evidence in conflict.evidence:
            step = self.state.step.get((self.graph.slots[evidence.neighbour], conflict.axis))
            text = f"{self.op(evidence.neighbour)}, dimension {evidence.dim} of the value between"
            sides.setdefault(evidence.factor, []).append(f"{text}, by {self.statement(step)}")
        return ConflictStory(
            self.state.axes[conflict.axis],
            self.op(conflict.op),
            tuple(_first_few(texts) for texts in sides.values()),
        )

    def fallbacks(self) -> list[FallbackStory]:
        """Every operand that was gathered because its op cannot be tiled there."""
        return [
            FallbackStory(
                self.plan.axes[fallback.axis],
                self.op(fallback.op),
                self.value(self.graph.operands[fallback.op][fallback.operand]),
                fallback.bytes,
            )
            for fallback in self.plan.fallbacks
        ]


def _first_few(texts: Sequence[str]) -> str:
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return texts[0] + more
