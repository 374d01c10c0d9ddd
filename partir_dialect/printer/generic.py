"""How is an op written in generic form?

What follows the operands (properties, attributes, types) is the same for many ops: it is
written once for each combination of attribute objects and remembered.
"""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region

from ..names import op_name
from ..raw import RESOURCES
from .attributes import AttributeWriter, quoted
from .locations import LocationWriter
from .names import ValueNames

# pyright: reportPrivateUsage=false

NAME_KEY = "op_name__"
"""Where xDSL keeps the name of an unregistered op."""
HIDDEN = (NAME_KEY, RESOURCES)
"""Attributes that are ours and are not written as such."""


Frame = tuple[str, str, str]


class GenericPrinter:
    """Writes ops line by line into `lines`."""

    def __init__(self, *, locations: bool) -> None:
        self.writer = AttributeWriter()
        self.places = LocationWriter(self.writer)
        self.with_locations = locations
        self.lines: list[str] = []
        self.names = ValueNames()
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._quick: dict[tuple[object, ...], tuple[str, str]] = {}

    # Ops

    def op(self, op: Operation, indent: str) -> None:
        """Writes one op and what is in it."""
        front, middle, back = self.frame(op)
        if self.with_locations:
            back = f"{back}{self.location(op.location)}"
        if op._successors:
            labels = [self.names.labels.get(id(b), "^<undefined>") for b in op._successors]
            middle = f"[{', '.join(labels)}]{middle}"
        head = f"{indent}{self.names.head(op)}{front}{self.names.operands(op)})"
        if not op.regions:
            self.lines.append(f"{head}{middle}{back}")
            return
        self.lines.append(f"{head}{middle} (")
        self.regions(op, indent)
        self.lines[-1] += f"){back}"

    def frame(self, op: Operation) -> Frame:
        """The op's name, its properties, and its attributes and types."""
        key = self.frame_key(op)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = self._frame(op)
        return found

    def frame_key(self, op: Operation) -> tuple[object, ...]:
        """What the text of an op depends on, apart from names, regions and locations."""
        properties, attributes, operands = op.properties, op.attributes, op._operands
        key = (
            type(op),
            len(operands),
            *[id(value._type) for value in operands],
            *[id(value._type) for value in op.results],
            *properties,
            *map(id, properties.values()),
        )
        return (*key, "", *attributes, *map(id, attributes.values())) if attributes else key

    def _frame(self, op: Operation) -> Frame:
        properties: dict[str, Attribute] = dict(op.properties)
        attributes = {k: v for k, v in op.attributes.items() if k not in HIDDEN}
        writer = self.writer
        middle = f" <{writer.dictionary(properties)}>" if properties else ""
        given = f" {writer.dictionary(attributes)}" if attributes else ""
        operands = writer.list([value.type for value in op._operands])
        results = writer.result_types([value.type for value in op.results])
        return f"{quoted(op_name(op))}(", middle, f"{given} : ({operands}) -> {results}"

    def location(self, location: LocationAttr) -> str:
        """` loc(#loc3)`."""
        return f" loc({self.places.alias(location)})"

    # Regions

    def regions(self, op: Operation, indent: str) -> None:
        """Writes `{ … }, { … }`; the last line is left open."""
        for index, region in enumerate(op.regions):
            if index:
                self.lines[-1] += ", "
            mark = self.names.enter(region)
            self.region(region, indent)
            self.names.leave(mark)

    def region(self, region: Region, indent: str, *, named_entry: bool = False) -> None:
        """Writes `{ … }`, whose names have been entered, on from the last line, which is left open.

        `named_entry`: the op has said the arguments of the entry block itself.
        """
        self.lines[-1] += "{"
        for index, block in enumerate(region.blocks):
            self._header(block, indent, first=index == 0, named=named_entry)
            self.block(block, indent + "  ")
        self.lines.append(f"{indent}}}")

    def _header(self, block: Block, indent: str, *, first: bool, named: bool) -> None:
        if (
            first
            and (named or not block.args)
            and block.first_use is None
            and (named or block._first_op is not None)
        ):
            return
        arguments = ", ".join([self.argument(argument) for argument in block.args])
        shown = f"({arguments})" if arguments else ""
        self.lines.append(f"{indent}{self.names.labels[id(block)]}{shown}:")

    def argument(self, argument: BlockArgument) -> str:
        """`%arg0: tensor<f32> loc(…)`."""
        name = self.names.of[id(argument)]
        text = f"{name}: {self.writer.text(argument.type)}"
        if self.with_locations:
            text += f" loc({self.places.inline(argument.location)})"
        return text

    def block(self, block: Block, indent: str) -> None:
        """Writes the ops of a block.

        The printer's inner loop: most ops have at most two operands, one result and nothing else,
        and are written here.
        """
        of, quick, add = self.names.of, self._quick, self.lines.append
        slow = self.with_locations
        op = block._first_op
        while op is not None:
            results, operands, properties = op.results, op._operands, op.properties
            if slow or op.regions or len(results) != 1 or op.attributes or op._successors:
                self.op(op, indent)
                op = op._next_op
                continue
            (result,) = results
            key: tuple[object, ...]
            kind, count = id(result._type), len(operands)
            if count == 2:
                left, right = operands
                names = f"{of[id(left)]}, {of[id(right)]}"
                key = (type(op), kind, id(left._type), id(right._type))
            elif count == 1:
                (only,) = operands
                names = of[id(only)]
                key = (type(op), kind, id(only._type))
            else:
                names = ", ".join([of[id(value)] for value in operands])
                key = (type(op), kind, *[id(value._type) for value in operands])
            if properties:
                key = (*key, *properties, *map(id, properties.values()))
            found = quick.get(key)
            if found is None:
                front, middle, back = self._frame(op)
                found = quick[key] = (front, f"){middle}{back}")
            add(f"{indent}{of[id(result)]} = {found[0]}{names}{found[1]}")
            op = op._next_op
