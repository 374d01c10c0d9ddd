"""Which op does this text say?

The general parser: generic form, regions, blocks, and the hand-over to the pretty forms. What
it learns from an op that stands on one line becomes a template (`templates`), so that the same
line with other names is not parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsolatedFromAbove

from .bridge import BridgeParser
from .scanner import unescape
from .templates import Template, link, make, placed
from .types import CLOSED_DIALECTS
from .values import Use, ValueReader, region_of

# pyright: reportPrivateUsage=false

_LONGEST_TEMPLATE = 4_000
_VALUE_NAME = re.compile(r"(?a)%[\w$.-]+(?:#\d+)?")
_RESULT_NAME = re.compile(r"(?a)(%[\w$.-]+)(?:[ \t]*:[ \t]*(\d+))?")
_LABEL = re.compile(r"(?a)\^[\w$.-]+")
_OP_NAME = re.compile(r"(?a)[A-Za-z_][\w$]*(?:\.[\w$-]+)*")
_QUOTED_NAME = re.compile(r'(?a)"([^"\\\n]*(?:\\[^\n][^"\\\n]*)*)"')
_NAMES = re.compile(r"(?a)(%[\w$.-]+(?:#\d+)?)")
_LINE = re.compile(rf"(?a)[ \t\r\n]*([%\"A-Za-z][^\n]{{0,{_LONGEST_TEMPLATE}}})$", re.MULTILINE)
_ENDS = frozenset(("}", "^", "", "#", "!", "{"))
"""With what no op begins: the block is at its end."""
_MAX_RESULTS = 100_000
_WITHOUT_CLASS = frozenset(("func.constant", "func.call_indirect"))
"""Ops of MLIR's own dialects that xDSL does not have."""
_SHORT_NAMES = {"module": "builtin.module", "return": "func.return", "call": "func.call"}

Argument = tuple[str, Attribute, LocationAttr | None, int]
"""A block argument: name, type, location, offset."""


@dataclass
class Draft:
    """An op that has been read but not made: values are still names."""

    name: str
    operands: Sequence[Use] = ()
    operand_types: Sequence[Attribute] = ()
    result_types: Sequence[Attribute] = ()
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    successors: Sequence[Block] = ()
    regions: Sequence[Region] = ()
    location: LocationAttr | None = None
    implicit_regions: bool = False
    made: Operation | None = None


class OperationReader(ValueReader):
    """The part of the reader that knows ops, blocks and regions in generic form."""

    offsets: dict[int, int] | None = None
    """Where each op begins, by `id`, if someone wants to know."""

    def start(self) -> None:
        self.start_scopes()
        self._bridge: BridgeParser | None = None
        self._classes: dict[str, type[Operation]] = {}
        self._own: dict[type[Operation], frozenset[str]] = {}
        self._templates: dict[str, Template | None] = {}

    # Hooks of the pretty reader

    def pretty(self, name: str, at: int) -> Draft:
        raise NotImplementedError

    # Classes

    def op_class(self, name: str, at: int) -> type[Operation]:
        """The class of an op; an unregistered one for dialects that nobody knows."""
        if (found := self._classes.get(name)) is not None:
            return found
        found = self.op_context.get_optional_op(name)
        if found is None:
            if name.partition(".")[0] in CLOSED_DIALECTS and name not in _WITHOUT_CLASS:
                known = [op.name for op in self.op_context.loaded_ops]
                self.fail(f"unknown op, got: {name}", at, name=name, candidates=known)
            found = UnregisteredOp.with_name(name)
        self._classes[name] = found
        return found

    def bridged(self, name: str, at: int) -> Draft:
        """An op whose class brings its own syntax, or a failure if there is no such class."""
        op_class = self.op_class(name, at)
        own = getattr(op_class.parse, "__func__", None)
        if issubclass(op_class, UnregisteredOp) or own is Operation.parse.__func__:  # type: ignore[attr-defined]
            self.fail(f'op has no pretty form here, write it as "{name}"(…)', at)
        if self._bridge is None:
            self._bridge = BridgeParser(self)
        op = self.nested(lambda: self._bridge.read(op_class, at))  # type: ignore[union-attr]
        return Draft(name, result_types=[result.type for result in op.results], made=op)

    def inherent(self, op_class: type[Operation]) -> frozenset[str]:
        """The names of the properties of an op, under which MLIR knows them."""
        names = self._own.get(op_class)
        if names is None:
            names = frozenset[str]()
            if issubclass(op_class, IRDLOperation):
                names = frozenset(op_class.get_irdl_definition().properties)
            self._own[op_class] = names
        return names

    # Blocks and regions

    def region(self, arguments: Sequence[Argument] | None = None) -> Region:
        """`{ … }`; `arguments` are those of the entry block when the op has said them."""
        return self.nested(lambda: self._region(arguments))

    def _region(self, arguments: Sequence[Argument] | None) -> Region:
        self.expect("{")
        mark = self.enter_region()
        blocks: list[Block] = []
        if arguments is not None or not (self.peek("^") or self.peek("}")):
            blocks.append(self._block(Block(), arguments or ()))
        while label := self.match(_LABEL):
            block = self.place_block(label[0], label.start())
            given: list[Argument] = []
            if self.accept("("):
                given = self.comma_list(")", self.block_argument)
            self.expect(":", "after a block's label")
            blocks.append(self._block(block, given))
        self.expect("}", "at the end of a region")
        self.leave_region(mark)
        return region_of(blocks)

    def block_argument(self) -> Argument:
        """`%name: type loc(…)`."""
        at, name = self.new_name()
        self.expect(":")
        type_ = self.type_()
        return name, type_, self.optional_location(), at

    def new_name(self) -> tuple[int, str]:
        """The name of a value that is being defined, with its offset."""
        match = self.need(_VALUE_NAME, "a value")
        if "#" in match[0]:
            self.fail(f"expected a plain name, got: {match[0]}", match.start())
        return match.start(), match[0]

    def _block(self, block: Block, arguments: Sequence[Argument]) -> Block:
        self.enter_block()
        for name, type_, location, at in arguments:
            self.add_argument(block, name, type_, location, at)
        ops: list[Operation] = []
        self.statements(ops)
        link(block, ops)
        self.leave_block()
        return block

    def statements(self, ops: list[Operation]) -> None:
        """All ops up to the end of the block."""
        text = self.text
        while True:
            line = _LINE.match(text, self.pos)
            if line is not None:
                op = self._from_template(line[1], line.start(1))
                if op is not None:
                    ops.append(op)
                    self.pos = line.end()
                    if self.offsets is not None:
                        self.offsets[id(op)] = line.start(1)
                    continue
            self.skip()
            start = self.pos
            char = text[start : start + 1]
            if char in _ENDS:
                return
            if char == "l" and ops and self.peek_word() == "loc":
                ops[-1].location = self.location()
                continue
            end = text.find("\n", start)
            ops.append(self.statement(start, len(text) if end < 0 else end))

    # Templates

    def _from_template(self, line: str, start: int) -> Operation | None:
        parts = _NAMES.split(line)
        last, has_location, place = parts[-1].rpartition(" loc(")
        if has_location:
            parts[-1] = last
        template = self._templates.get("\n".join(parts[::2]))
        if template is None:
            return None
        location = None
        if has_location:
            location = self.location_memo.get(place[:-1]) or self.quick_location(place[:-1])
            if location is None or place[-1] != ")":
                return None
        names = parts[1::2]
        scope = self.scope
        values = scope.values
        operands: list[SSAValue] = []
        for index, type_ in template.operands:
            value = values.get(names[index])
            if value is None or value._type is not type_:
                return None
            operands.append(value)
        op = make(template, operands, location)
        if template.single and not scope.forward and (name := names[0]) not in values:
            result = op.results[0]
            values[name] = result
            scope.defined.append(name)
            if not name[1].isdigit():
                result.name_hint = name[1:]
        elif template.results:
            at = 0
            for index, count in enumerate(template.counts):
                self.names_of(op.results[at : at + count], ((names[index], count, start),))
                at += count
        return op

    def _learn(
        self, start: int, op_end: int, end: int, draft: Draft, op: Operation, counts: list[int]
    ) -> None:
        """Keeps what the line said, if nothing but names and location can differ."""
        if draft.made or draft.successors or (draft.regions and not draft.implicit_regions):
            return
        line = self.text[start:op_end]
        if end - start >= _LONGEST_TEMPLATE or "\n" in line or self.text[self.pos : end].strip():
            return
        rest = self.text[op_end : self.pos]
        if rest.strip() and not rest.startswith(" loc("):
            return
        parts = _NAMES.split(line)
        if len(parts) // 2 != len(counts) + len(draft.operands):
            return
        order = sorted(at for _, at in draft.operands)
        if len(set(order)) != len(order):
            return
        rank = {at: len(counts) + index for index, at in enumerate(order)}
        operands = [
            (rank[at], type_)
            for (_, at), type_ in zip(draft.operands, draft.operand_types, strict=True)
        ]
        self._templates["\n".join(parts[::2])] = Template(type(op), operands, op, tuple(counts))

    # Statements

    def statement(self, start: int, end: int) -> Operation:
        """One op, with the names of its results, by the general parser."""
        results = self._result_names()
        self.skip()
        at = self.pos
        draft = self.operation()
        total = len(draft.result_types)
        named = sum(count for _, count, _ in results)
        if results and named != total:
            self.fail(f"op has {total} results, but names are given for: {named}", start)
        op_end = start + len(self.text[start : self.pos].rstrip())
        location = draft.location or self.optional_location()
        op = draft.made or self.build(draft, at)
        if self.offsets is not None:
            self.offsets[id(op)] = at
        if location is not None:
            op.location = location
            if draft.implicit_regions:
                for region in op.regions:
                    placed(region, location)
        self.names_of(op.results, results)
        if len(results) or not total:
            self._learn(start, op_end, end, draft, op, [count for _, count, _ in results])
        return op

    def _result_names(self) -> list[tuple[str, int, int]]:
        names: list[tuple[str, int, int]] = []
        if not self.peek("%"):
            return names
        while True:
            match = self.need(_RESULT_NAME, "the name of a result")
            count = int(match[2]) if match[2] and len(match[2]) < 9 else 1
            if not 0 < count <= _MAX_RESULTS:
                self.fail(f"number of results must be from 1 to {_MAX_RESULTS}", match.start())
            names.append((match[1], count, match.start()))
            if not self.accept(","):
                break
        self.expect("=", "after the names of results")
        return names

    def operation(self) -> Draft:
        """An op without its results' names."""
        self.skip()
        at = self.pos
        quoted = self.match(_QUOTED_NAME)
        if quoted is not None:
            return self.generic(unescape(quoted[1]), at)
        match = self.need(_OP_NAME, "an op")
        return self.pretty(_SHORT_NAMES.get(match[0], match[0]), at)

    def use(self) -> Use:
        """The name of a value that is being used."""
        match = self.need(_VALUE_NAME, "a value")
        return match[0], match.start()

    def generic(self, name: str, at: int) -> Draft:
        """`(…)[…]<{…}>({…}) {…} : (…) -> …`, the name of the op being read already."""
        if not name or "\n" in name:
            self.fail("op name is empty", at)
        op_class = self.op_class(name, at)
        self.expect("(", "after an op's name")
        operands = self.comma_list(")", self.use)
        draft = Draft(name, operands)
        if self.accept("["):
            draft.successors = self.comma_list("]", self._successor)
        if self.accept("<"):
            draft.properties = self.dictionary()
            self.expect(">", "at the end of properties")
        if self.accept("("):
            draft.regions = self._regions(op_class)
        if self.peek("{"):
            draft.attributes = self.dictionary()
        self.expect(":", "before the types of an op")
        self.skip()
        types_at = self.pos
        draft.operand_types, draft.result_types = self.signature()
        if len(draft.operand_types) != len(operands):
            self.fail(
                f"op has {len(operands)} operands, but types are given for: "
                f"{len(draft.operand_types)}",
                types_at,
            )
        return draft

    def _regions(self, op_class: type[Operation]) -> list[Region]:
        if not self.isolated(op_class):
            return self.comma_list(")", self.region)
        outer = self.enter_isolated()
        regions = self.comma_list(")", self.region)
        self.leave_isolated(outer)
        return regions

    def isolated(self, op_class: type[Operation]) -> bool:
        """Whether regions of this op see no value from outside."""
        return op_class.has_trait(IsolatedFromAbove, value_if_unregistered=False)

    def _successor(self) -> Block:
        match = self.need(_LABEL, "a block")
        return self.successor(match[0], match.start())

    # Building

    def build(self, draft: Draft, at: int) -> Operation:
        """Makes the op that a draft describes."""
        op_class = self.op_class(draft.name, at)
        operands = [
            self.value(use, type_)
            for use, type_ in zip(draft.operands, draft.operand_types, strict=True)
        ]
        inherent = self.inherent(op_class)
        for name in [name for name in draft.attributes if name in inherent]:
            if name in draft.properties:
                self.fail(f"attribute is given twice, got: {name}", at)
            draft.properties[name] = draft.attributes.pop(name)
        op = op_class.create(
            operands=operands,
            result_types=draft.result_types,
            properties=draft.properties,
            attributes=draft.attributes,
            successors=draft.successors,
            regions=draft.regions,
        )
        return op


Handler = Callable[[OperationReader, str, int], Draft]
Handlers = Mapping[str, Handler]


def text_of(attribute: Attribute | None) -> str:
    """The text of a string attribute, empty for anything else."""
    return attribute.data if isinstance(attribute, StringAttr) else ""
