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


class GenericPrinter:
    """Writes ops line by line into `lines`."""

    def __init__(self, *, locations: bool) -> None:
        self.writer = AttributeWriter()
        self.places = LocationWriter(self.writer)
        self.with_locations = locations
        self.lines: list[str] = []
        self.names = ValueNames()
        self._tails: dict[tuple[object, ...], tuple[str, str]] = {}

    # Ops

    def op(self, op: Operation, indent: str) -> None:
        """Writes one op and what is in it."""
        head = indent + self.names.heads.get(id(op), "")
        operands = self.names.operands(op)
        middle, tail = self.tail(op)
        if self.with_locations:
            tail = f"{tail}{self.location(op.location)}"
        name = quoted(op_name(op))
        if op._successors:
            labels = ", ".join(self.names.labels.get(id(b), "^<undefined>") for b in op._successors)
            middle = f"[{labels}]{middle}"
        if not op.regions:
            self.lines.append(f"{head}{name}({operands}){middle}{tail}")
            return
        self.lines.append(f"{head}{name}({operands}){middle} (")
        self.regions(op, indent)
        self.lines[-1] += f"){tail}"

    def tail(self, op: Operation) -> tuple[str, str]:
        """The properties, and the attributes and types of an op."""
        key = self.tail_key(op)
        found = self._tails.get(key)
        if found is None:
            found = self._tails[key] = self._tail(op)
        return found

    def tail_key(self, op: Operation) -> tuple[object, ...]:
        """What the text of an op depends on, apart from names, regions and locations."""
        properties, attributes = op.properties, op.attributes
        return (
            type(op),
            *properties,
            *map(id, properties.values()),
            *attributes,
            *map(id, attributes.values()),
            "(",
            *[id(value._type) for value in op._operands],
            ")",
            *[id(value._type) for value in op.results],
        )

    def _tail(self, op: Operation) -> tuple[str, str]:
        properties: dict[str, Attribute] = dict(op.properties)
        attributes = {k: v for k, v in op.attributes.items() if k not in HIDDEN}
        writer = self.writer
        middle = f" <{writer.dictionary(properties)}>" if properties else ""
        given = f" {writer.dictionary(attributes)}" if attributes else ""
        operands = writer.list([value.type for value in op._operands])
        results = writer.result_types([value.type for value in op.results])
        return middle, f"{given} : ({operands}) -> {results}"

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
        """Writes the ops of a block."""
        op = block._first_op
        while op is not None:
            self.op(op, indent)
            op = op._next_op
