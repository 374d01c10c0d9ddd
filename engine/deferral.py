"""Which sums stay pending, and through which ops: only where pending sums meet.

A value that is partial over some axes is followed through single-use ops that are linear in it, to
an op (an addition) whose other side is partial over the same axes. There, and only there, the
reduction waits: one reduction after the meeting instead of two before it (DESIGN, section 5). Trees
of additions are reassociated first, so that pending leaves meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..partir_dialect.rules.base import Kind
from .graph import ARGUMENT, RESULT, Graph
from .route import Pending
from .state import ANY, State

_ADD = "stablehlo.add"


@dataclass
class Deferrals:
    """The outcome: `waiting[v]` is what value v still has pending when its one use takes it,
    `through` the ops that run on pending operands (with what is pending), and the rewiring by
    reassociation: new operands of an op, and ops that now run just before another. `fed` are the
    pending operands of each op in `through`."""

    waiting: dict[int, Pending] = field(default_factory=dict[int, Pending])
    through: dict[int, Pending] = field(default_factory=dict[int, Pending])
    operands: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    before: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    moved: set[int] = field(default_factory=set[int])
    fed: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def sources(self, graph: Graph, op: int) -> tuple[int, ...]:
        """The ops whose sums are pending in what `op` makes: itself, or those that it carries."""
        if op not in self.through:
            return (op,)
        found: dict[int, None] = {}
        stack = [op]
        while stack:
            carrier = stack.pop()
            for value in self.fed[carrier]:
                producer = graph.producer[value][0]
                if producer in self.through:
                    stack.append(producer)
                else:
                    found[producer] = None
        return tuple(sorted(found))


def produced_pending(state: State, op: int) -> Pending:
    """What the op's own nest leaves partial in its results."""
    shape = state.graph.op_shapes[op]
    return tuple(
        (axis, shape.factors[f].reducer or "add")
        for axis, f in state.nests[state.graph.slots[op]]
        if f >= 0 and shape.partial[f]
    )


def find_deferrals(state: State) -> Deferrals:
    """All deferrals of the state; pure."""
    view = _View(state)
    view.sweep()
    if view.reassociate():
        view.sweep()
    view.collect()
    return view.out


class _View:
    """The graph with the operands that reassociation has changed, and what is pendable in it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.graph = state.graph
        self.out = Deferrals()
        self.pendable: dict[int, Pending] = {}
        self.meets: list[int] = []
        self.fed: dict[int, tuple[int, ...]] = {}

    def operands(self, op: int) -> tuple[int, ...]:
        return self.out.operands.get(op) or self.graph.operands[op]

    def order(self) -> list[int]:
        """Ops in the order in which they run."""
        if not self.out.moved:
            return list(range(len(self.graph.kinds)))
        out: list[int] = []
        for op in range(len(self.graph.kinds)):
            if op not in self.out.moved:
                out.extend(self.out.before.get(op, ()))
                out.append(op)
        return out

    def sweep(self) -> None:
        """Finds what may stay pending (`pendable`) and where two pending sides meet."""
        self.pendable.clear()
        self.meets.clear()
        self.fed.clear()
        graph, nests, slots = self.graph, self.state.nests, self.graph.slots
        pendable = self.pendable
        for op in self.order():
            results = graph.results[op]
            if len(results) != 1:
                continue
            own = produced_pending(self.state, op) if nests[slots[op]] else ()
            if own:
                if self._free(results[0], own):
                    pendable[results[0]] = own
                continue
            if pendable and any(v in pendable for v in self.operands(op)):
                self._carry(op, results[0])

    def _free(self, value: int, pending: Pending) -> bool:
        """One use only, in the same region, and no stop or replicate on the axes."""
        graph = self.graph
        uses = graph.uses[value]
        if len(uses) != 1:
            return False
        region = graph.region_of[graph.producer[value][0]]
        return region == graph.region_of[uses[0][0]] and not any(
            value in self.state.barrier[axis] for axis, _ in pending
        )

    def _carry(self, op: int, result: int) -> None:
        operands = self.operands(op)
        hot = [k for k, v in enumerate(operands) if v in self.pendable]
        keys = {self.pendable[operands[k]] for k in hot}
        if len(keys) != 1 or self.graph.kinds[op] in (ARGUMENT, RESULT):
            return
        pending = keys.pop()
        reducers = {reducer for _, reducer in pending}
        for linear in self.graph.op_shapes[op].rule.linear:
            if not reducers <= linear.reducers:
                continue
            if linear.joint and set(hot) != set(linear.operands):
                continue
            if not linear.joint and (len(hot) != 1 or hot[0] not in linear.operands):
                continue
            if not self._fits(op, pending, hot):
                continue
            self.fed[op] = tuple(operands[k] for k in hot)
            if len(hot) > 1:
                self.meets.append(op)
            if self._free(result, pending):
                self.pendable[result] = pending
            return

    def _fits(self, op: int, pending: Pending, hot: list[int]) -> bool:
        """The op can run without the pending axes in its nest, on the tiles as they come."""
        axes = {axis for axis, _ in pending}
        slot = self.graph.slots[op]
        factors = self.graph.op_shapes[op].factors
        for axis, f in self.state.nests[slot]:
            if axis in axes and (f == ANY or factors[f].kind is not Kind.PARALLEL):
                return False
        for k, value in enumerate(self.operands(op)):
            if k not in hot:
                if any(self.state.tile[axis][value] >= 0 for axis in axes):
                    return False
                continue
            for axis in range(len(self.state.axes)):
                if axis in axes:
                    continue
                entry = self.state.entry[axis][slot]
                where = self.graph.op_shapes[op].where_in[entry] if entry >= 0 else ()
                wanted = next((d for k2, d in where if k2 == k), -1)
                if wanted != self.state.tile[axis][value]:
                    return False
        return True

    def collect(self) -> None:
        """From the meetings back to the producers: what waits, and through which ops."""
        for meet in self.meets:
            stack = [meet]
            while stack:
                op = stack.pop()
                if op in self.out.through:
                    continue
                fed = self.fed.get(op)
                if fed is None:
                    continue
                pending = self.pendable[fed[0]]
                self.out.through[op] = pending
                self.out.fed[op] = fed
                for value in fed:
                    self.out.waiting[value] = pending
                    stack.append(self.graph.producer[value][0])

    # --- reassociation ------------------------------------------------------------------------

    def reassociate(self) -> bool:
        """Rewires trees of additions in which pending leaves do not meet; says whether it did."""
        graph = self.graph
        changed = False
        seen: set[int] = set()
        for value in list(self.pendable):
            use = graph.uses[value][0][0]
            if graph.kinds[use] != _ADD or use in seen or value in seen:
                continue
            root = self._root(use)
            upper, items = self._items(root)
            seen.update(upper)
            groups: dict[Pending, list[int]] = {}
            for item in items:
                key = self.pendable.get(item)
                if key is not None:
                    groups.setdefault(key, []).append(item)
            if any(len(group) > 1 for group in groups.values()) and len(items) > 2:
                self._rewire(root, upper, items, groups)
                changed = True
        return changed

    def _root(self, op: int) -> int:
        graph = self.graph
        while True:
            result = graph.results[op][0]
            if len(graph.uses[result]) != 1 or result in self.pendable:
                return op
            user = graph.uses[result][0][0]
            apart = graph.region_of[user] != graph.region_of[op]
            if graph.kinds[user] != _ADD or apart or self._flagged(result):
                return op
            op = user

    def _flagged(self, value: int) -> bool:
        return any(value in barrier for barrier in self.state.barrier)

    def _items(self, root: int) -> tuple[list[int], list[int]]:
        """The additions of the tree that are not themselves pendable, root first, and what they
        add."""
        graph = self.graph
        upper, items = [root], list[int]()
        stack = list(reversed(graph.operands[root]))
        while stack:
            value = stack.pop()
            op = graph.producer[value][0]
            inner = (
                graph.kinds[op] == _ADD
                and graph.region_of[op] == graph.region_of[root]
                and len(graph.uses[value]) == 1
                and value not in self.pendable
                and not self._flagged(value)
            )
            if inner:
                upper.append(op)
                stack.extend(reversed(graph.operands[op]))
            else:
                items.append(value)
        return upper, items

    def _rewire(
        self, root: int, upper: list[int], items: list[int], groups: dict[Pending, list[int]]
    ) -> None:
        """Adds the members of each group first, then the sums and the rest; all just before the
        root."""
        ops = sorted(upper)
        ops.remove(root)
        spare = iter([*ops, root])
        grouped = {item for group in groups.values() if len(group) > 1 for item in group}
        rest = [item for item in items if item not in grouped]
        sums: list[int] = []
        for group in groups.values():
            if len(group) > 1:
                total = group[0]
                for item in group[1:]:
                    total = self._add(next(spare), total, item)
                sums.append(total)
        terms = [*rest, *sums]
        total = terms[0]
        for term in terms[1:]:
            total = self._add(next(spare), total, term)
        self.out.before[root] = ops
        self.out.moved.update(ops)

    def _add(self, op: int, left: int, right: int) -> int:
        self.out.operands[op] = (left, right)
        return self.graph.results[op][0]
