"""Which value does a name mean?

Names live in flat dictionaries; a region takes its own names away when it ends, an isolated op
begins with none. A name may be used before its definition only across blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .locations import LocationReader

Use = tuple[str, int]
"""A value's name as written (`%0#1`) and the offset where it is used."""


class ForwardValue(SSAValue):
    """Stands for a value whose definition is still to come."""

    @property
    def owner(self) -> Operation | Block:
        raise AssertionError("a forward reference has no owner")


class Scope:
    """The names of one isolated op."""

    def __init__(self) -> None:
        self.values: dict[str, SSAValue] = {}
        self.defined: list[str] = []
        self.forward: dict[str, tuple[ForwardValue, int, tuple[tuple[int, int], ...]]] = {}
        self.path: list[tuple[int, int]] = []  # (region, block) from the outside in
        self.regions: list[int] = []
        self.blocks: list[dict[str, tuple[Block, int, bool]]] = []


class ValueReader(LocationReader):
    """The part of the reader that knows names of values and blocks."""

    def start_scopes(self) -> None:
        self.scope = Scope()
        self._serial = 0

    # Values

    def value(self, use: Use, type_: Attribute) -> SSAValue:
        """The value of this name, which must have this type."""
        name, at = use
        found = self.scope.values.get(name)
        if found is None:
            found = self._other_spelling(name)
        if found is None:
            return self._forward(name, at, type_)
        if found.type is not type_ and found.type != type_:
            self.fail(f"{name} has type {found.type}, but is used with type {type_}", at, name=name)
        return found

    def _other_spelling(self, name: str) -> SSAValue | None:
        return self.scope.values.get(name[:-2]) if name.endswith("#0") else None

    def _forward(self, name: str, at: int, type_: Attribute) -> SSAValue:
        base = name.partition("#")[0]
        if base in self.scope.values:
            self.fail(f"no such result, got: {name}", at)
        if waiting := self.scope.forward.get(name):
            if waiting[0].type != type_:
                self.fail(f"{name} is used with type {waiting[0].type} and with {type_}", at)
            return waiting[0]
        value = ForwardValue(type_)
        self.scope.forward[name] = (value, at, tuple(self.scope.path))
        return value

    def define(self, name: str, value: SSAValue, at: int) -> None:
        """Gives a value its name."""
        scope = self.scope
        if name in scope.values:
            self.fail(f"value is defined twice, got: {name}", at)
        if scope.forward:
            self._settle(name, value)
        scope.values[name] = value
        scope.defined.append(name)

    def _settle(self, name: str, value: SSAValue) -> None:
        waiting = self.scope.forward.pop(name, None)
        if waiting is None and "#" not in name:
            waiting = self.scope.forward.pop(f"{name}#0", None)
        if waiting is None:
            return
        forward, at, path = waiting
        here = self.scope.path[-1]
        if here in path:
            self.fail(f"value is used before its definition, got: {name}", at)
        if all(region != here[0] for region, _ in path):
            self.fail(f"value is used outside the region that defines it, got: {name}", at)
        if forward.type != value.type:
            self.fail(f"{name} has type {value.type}, but is used with type {forward.type}", at)
        forward.replace_all_uses_with(value)

    def names_of(self, values: Sequence[SSAValue], names: Sequence[tuple[str, int, int]]) -> None:
        """Names the results of an op; `names` holds (name, how many, offset)."""
        index = 0
        for name, count, at in names:
            hint = name[1:]
            keep = not hint[0].isdigit()
            self.define(name, values[index], at)
            for offset in range(count):
                value = values[index + offset]
                if count > 1:
                    self.define(f"{name}#{offset}", value, at)
                if keep:
                    value.name_hint = hint
            index += count

    # Scopes

    def enter_isolated(self) -> Scope:
        """Begins an op that sees no outside names; give the answer to `leave_isolated`."""
        outer, self.scope = self.scope, Scope()
        return outer

    def leave_isolated(self, outer: Scope) -> None:
        self.check_settled()
        self.scope = outer

    def check_settled(self) -> None:
        """Fails if a name was used and never defined."""
        if self.scope.forward:
            name, (_, at, _) = next(iter(self.scope.forward.items()))
            self.fail(
                f"undefined value, got: {name}",
                at,
                name=name,
                candidates=[n for n in self.scope.values if "#" not in n][-500:],
            )

    def enter_region(self) -> int:
        self._serial += 1
        self.scope.regions.append(self._serial)
        self.scope.blocks.append({})
        return len(self.scope.defined)

    def leave_region(self, mark: int) -> None:
        """Forgets the names of a region; `mark` is what `enter_region` gave."""
        for label, (_, at, placed) in self.scope.blocks.pop().items():
            if not placed:
                self.fail(f"undefined block, got: {label}", at)
        for name in self.scope.defined[mark:]:
            del self.scope.values[name]
        del self.scope.defined[mark:]
        self.scope.regions.pop()

    def enter_block(self) -> None:
        self._serial += 1
        self.scope.path.append((self.scope.regions[-1], self._serial))

    def leave_block(self) -> None:
        self.scope.path.pop()

    # Blocks

    def successor(self, label: str, at: int) -> Block:
        """The block of this label, in the region being read."""
        blocks = self.scope.blocks[-1] if self.scope.blocks else {}
        if label not in blocks:
            blocks[label] = (Block(), at, False)
        return blocks[label][0]

    def place_block(self, label: str, at: int) -> Block:
        """The block whose header has this label."""
        blocks = self.scope.blocks[-1]
        block, _, placed = blocks.get(label, (Block(), at, False))
        if placed:
            self.fail(f"block is defined twice, got: {label}", at)
        blocks[label] = (block, at, True)
        return block

    def add_argument(
        self, block: Block, name: str, type_: Attribute, location: LocationAttr | None, at: int
    ) -> None:
        """Adds a block argument and names it."""
        argument = block.insert_arg(type_, len(block.args))
        if location is not None:
            argument.location = location
        if not name[1].isdigit():
            argument.name_hint = name[1:]
        self.define(name, argument, at)


def region_of(blocks: Sequence[Block]) -> Region:
    """A region of these blocks."""
    return Region(list(blocks))
