"""What has been decided so far: the nest of every slot, with an undo log and an incremental hash.

An axis is an index into `axes`; `entry[axis][slot]` is the factor that the axis tiles there, `NONE`
or `ANY` (decided to be equal on all devices); `tile[axis][value]` is the dimension that the axis
tiles of the value as its producer makes it, or -1. The nest of a slot is the ordered tuple of its
entries; the order is part of the state (DESIGN, section 3).
"""

from __future__ import annotations

from math import gcd, prod

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.rules.base import Kind
from .graph import Graph

NONE = -1
ANY = -2

Nest = tuple[tuple[int, int], ...]

_FLAG_STOP, _FLAG_REPLICATE, _FLAG_TAG = 1, 2, -4


class State:
    """The nests over a graph and a mesh. All changes go through `decide` and `flag`."""

    def __init__(self, graph: Graph, mesh: Mesh) -> None:
        self.graph = graph
        self.mesh = mesh
        self.axes = mesh.names
        self.sizes = mesh.sizes
        ops, values = len(graph.kinds), len(graph.shapes)
        self.nests: list[Nest] = [()] * ops
        self.entry: list[list[int]] = [[NONE] * ops for _ in self.axes]
        self.tile: list[list[int]] = [[-1] * values for _ in self.axes]
        self.barrier: list[dict[int, int]] = [{} for _ in self.axes]
        self.step: dict[tuple[int, int], int] = {}
        self.current_step = 0
        self.once: set[int] = set()
        self.splits: dict[tuple[int, int], int] = {}
        self.hash = hash(self.sizes)
        self._log: list[tuple[int, int, int]] = []

    # --- change -------------------------------------------------------------------------------

    def decide(self, slot: int, axis: int, factor: int) -> None:
        """Appends (axis, factor) to the nest of the slot."""
        assert self.entry[axis][slot] == NONE, (slot, axis)
        nest = self.nests[slot]
        self.hash ^= hash((slot, len(nest), axis, factor))
        self.nests[slot] = (*nest, (axis, factor))
        self.entry[axis][slot] = factor
        self.step[slot, axis] = self.current_step
        self._log.append((0, slot, axis))
        self._set_tiles(slot, axis, factor)

    def _set_tiles(self, slot: int, axis: int, factor: int) -> None:
        graph, tile = self.graph, self.tile[axis]
        for op in graph.slot_ops[slot]:
            places = graph.op_shapes[op].where_out[factor] if factor >= 0 else ()
            for r, d in places:
                tile[graph.results[op][r]] = d

    def flag(self, value: int, axis: int, *, replicate: bool) -> None:
        """Puts a `stop` (or `replicate`) on the value: no evidence passes it along the axis."""
        kind = _FLAG_REPLICATE if replicate else _FLAG_STOP
        self.hash ^= hash((value, axis, kind, _FLAG_TAG))
        self._log.append((1, value, axis))
        self.barrier[axis][value] = kind

    def gather_once(self, value: int) -> None:
        """Policy: the gathers of this parameter are shared by its uses."""
        if value not in self.once:
            self.hash ^= hash((value, -3))
            self.once.add(value)
            self._log.append((2, value, 0))

    def is_replicated(self, value: int, axis: int) -> bool:
        """Whether a `replicate` makes the value whole along the axis for all that use it."""
        return self.barrier[axis].get(value) == _FLAG_REPLICATE

    # --- undo ---------------------------------------------------------------------------------

    def mark(self) -> int:
        """A point to come back to by `undo`."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Takes back everything since the mark; the hash is again what it was."""
        graph = self.graph
        while len(self._log) > mark:
            what, item, axis = self._log.pop()
            if what == 1:
                kind = self.barrier[axis].pop(item)
                self.hash ^= hash((item, axis, kind, _FLAG_TAG))
            elif what == 2:
                self.once.discard(item)
                self.hash ^= hash((item, -3))
            else:
                nest = self.nests[item]
                factor = nest[-1][1]
                self.nests[item] = nest[:-1]
                self.hash ^= hash((item, len(nest) - 1, axis, factor))
                self.entry[axis][item] = NONE
                del self.step[item, axis]
                for op in graph.slot_ops[item]:
                    for value in graph.results[op]:
                        self.tile[axis][value] = -1

    def changed_since(self, mark: int) -> list[tuple[int, int]]:
        """The (slot, axis) decisions since the mark, in order."""
        return [(item, axis) for what, item, axis in self._log[mark:] if what == 0]

    # --- questions ----------------------------------------------------------------------------

    def remaining(self, slot: int, op: int, factor: int) -> int:
        """The size of the factor of `op` on one device, under the slot's nest."""
        size = self.graph.op_shapes[op].factors[factor].size
        for axis, f in self.nests[slot]:
            if f == factor:
                size = -(-size // self.sizes[axis])
        return size

    def factor_for(self, op: int, dim: tuple[int, ...], axis: int) -> int:
        """The factor of a dimension (its factors major to minor) that the axis would tile, or NONE.

        Products fill major to minor (rule 6); an axis that divides only after it is split is noted
        in `splits`. The first axis on a factor may leave padding at the tail; further ones divide.
        """
        shape = self.graph.op_shapes[op]
        slot = self.graph.slots[op]
        size = self.sizes[axis]
        closed = self.graph.given.get(slot, ()) if self.graph.given else ()
        if slot in self.graph.reserved and self._is_reserved(slot, axis):
            return NONE
        for f in dim:
            if not shape.usable[f] or f in closed:
                return NONE
            left = self.remaining(slot, op, f)
            if left == 1:
                continue
            whole = shape.factors[f].size
            if left % size == 0 or (left == whole and shape.padable[f]):
                return f if self._is_open(op, slot, f) else NONE
            common = gcd(left, size)
            if common > 1 and len(dim) > 1:
                self.splits[op, axis] = common
            return NONE
        return NONE

    def _is_reserved(self, slot: int, axis: int) -> bool:
        name = self.axes[axis]
        return any(
            name == kept or name.startswith(kept + ".") for kept in self.graph.reserved[slot]
        )

    def _is_open(self, op: int, slot: int, factor: int) -> bool:
        """Whether what has been tiled of the op lets the factor be tiled."""
        alone = self.graph.op_shapes[op].alone
        if alone[factor] and any(f >= 0 and f != factor and alone[f] for _, f in self.nests[slot]):
            return False
        return self._majors_filled(op, slot, factor)

    def _majors_filled(self, op: int, slot: int, factor: int) -> bool:
        shape = self.graph.op_shapes[op]
        for where, table in ((shape.where_in, shape.inputs), (shape.where_out, shape.outputs)):
            for k, d in where[factor]:
                made_of = table[k][d]
                if len(made_of) > 1:
                    for f in made_of:
                        if f == factor:
                            break
                        if self.remaining(slot, op, f) > 1:
                            return False
        return True

    def kind_of(self, op: int, factor: int) -> Kind:
        return self.graph.op_shapes[op].factors[factor].kind

    def axes_on(self, slot: int, factor: int) -> tuple[int, ...]:
        """The axes that tile a factor, in nest order."""
        return tuple(axis for axis, f in self.nests[slot] if f == factor)

    def local_size(self, value: int) -> int:
        """Elements of the value on one device, as its producer makes it."""
        total = prod(self.graph.shapes[value])
        for axis, size in enumerate(self.sizes):
            if self.tile[axis][value] >= 0:
                total = -(-total // size)
        return total

    # --- refinement ---------------------------------------------------------------------------

    def refined(self, mesh: Mesh, mapping: dict[int, tuple[int, ...]]) -> State:
        """The same decisions over a mesh in which axis a has become the axes `mapping[a]`."""
        other = State(self.graph, mesh)
        for what, item, axis in self._log:
            if what == 2:
                other.gather_once(item)
                continue
            for atom in mapping[axis]:
                if what == 1:
                    replicate = self.barrier[axis][item] == _FLAG_REPLICATE
                    other.flag(item, atom, replicate=replicate)
                else:
                    other.current_step = self.step[item, axis]
                    other.decide(item, atom, self.entry[axis][item])
        other.current_step = self.current_step
        return other

    def mark_of_step(self, step: int) -> int:
        """The mark at which the decisions of that statement begin."""
        for mark, (what, item, axis) in enumerate(self._log):
            if what == 0 and self.step[item, axis] >= step:
                return mark
        return len(self._log)
