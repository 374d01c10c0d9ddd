"""How are Shardy's attributes written? Thin wrappers of the values in `sdy_values`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, Data, OpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .sdy_values import (
    FACTOR_KINDS,
    AllToAllParam,
    AxisRef,
    DimSharding,
    MeshValue,
    Sharding,
    ShardingRule,
    axes_text,
    factor_number,
)
from .stablehlo_structs import read_integer, read_string

T = TypeVar("T")
_PRIORITY = re.compile(r"p(\d+)\Z")
_FACTOR = re.compile(r"z_\d+|[i-z]")

PROPAGATION_DIRECTIONS = ("NONE", "FORWARD", "BACKWARD", "BOTH")
"""The words for the numbers that `sdy.propagation_barrier` stores."""


def direction_attr(word: str) -> IntegerAttr[IntegerType]:
    """How `sdy.propagation_barrier` stores NONE, FORWARD, BACKWARD or BOTH."""
    return IntegerAttr(PROPAGATION_DIRECTIONS.index(word), 32)


# --- reading ------------------------------------------------------------------------------


def _braces(parser: AttrParser, read: Callable[[AttrParser], T]) -> tuple[T, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: read(parser)))


def _square(parser: AttrParser, read: Callable[[AttrParser], T]) -> tuple[T, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: read(parser)))


def read_axis(parser: AttrParser) -> AxisRef:
    """Reads `"x"` or `"x":(2)4`."""
    name = read_string(parser, " for an axis")
    if parser.parse_optional_punctuation(":") is None:
        return AxisRef(name)
    with parser.in_parens():
        before = read_integer(parser)
    return AxisRef(name, before, read_integer(parser))


def read_axes(parser: AttrParser) -> tuple[AxisRef, ...]:
    """Reads `{"x", "y"}`."""
    return _braces(parser, read_axis)


def read_dim_sharding(parser: AttrParser) -> DimSharding:
    """Reads `{"x", ?}p1`."""
    axes: list[AxisRef] = []
    is_open = False
    parser.parse_punctuation("{")
    while parser.parse_optional_punctuation("}") is None:
        if axes:
            parser.parse_punctuation(",")
        if parser.parse_optional_punctuation("?") is not None:
            is_open = True
            parser.parse_punctuation("}")
            break
        axes.append(read_axis(parser))
    return DimSharding(tuple(axes), is_open, _read_priority(parser))


def _read_priority(parser: AttrParser) -> int | None:
    start = parser.pos
    word = parser.parse_optional_identifier()
    if word is None:
        return None
    match = _PRIORITY.match(word)
    if match is None:
        parser.raise_error(f"a priority is written p0, p1 …, got: {word}", start, parser.pos)
    return int(match.group(1))


def read_mesh(parser: AttrParser) -> MeshValue:
    """Reads `<["x"=2, "y"=4], device_ids=[…]>`."""

    def axis(parser: AttrParser) -> tuple[str, int]:
        name = read_string(parser, " for an axis")
        parser.parse_punctuation("=")
        return name, read_integer(parser)

    with parser.in_angle_brackets():
        axes = _square(parser, axis)
        if parser.parse_optional_punctuation(",") is None:
            return MeshValue(axes)
        parser.parse_keyword("device_ids")
        parser.parse_punctuation("=")
        devices = _square(parser, read_integer)
    plain = devices == tuple(range(len(devices))) and bool(axes)
    return MeshValue(axes, () if plain else devices)


def read_sharding(parser: AttrParser) -> Sharding:
    """Reads `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>`."""
    extras: dict[str, tuple[AxisRef, ...]] = {}
    with parser.in_angle_brackets():
        symbol = parser.parse_optional_symbol_name()
        if symbol is None:
            parser.parse_keyword("mesh", " or a symbol in a sharding")
        mesh = read_mesh(parser) if symbol is None else symbol.data
        parser.parse_punctuation(",")
        dims = _square(parser, read_dim_sharding)
        while parser.parse_optional_punctuation(",") is not None:
            key = parser.parse_keyword_in(("replicated", "unreduced"))
            parser.parse_punctuation("=")
            extras[key] = read_axes(parser)
    return Sharding(mesh, dims, **extras)


def _read_element(parser: AttrParser) -> Sharding:
    """A sharding in a list: `<@mesh, …>`, or the whole `#sdy.sharding<@mesh, …>`."""
    attr = parser.parse_optional_attribute()
    if attr is None:
        return read_sharding(parser)
    if not isinstance(attr, ShardingAttr):
        parser.raise_error(f"expected a sharding, got: {attr}")
    return attr.data


def _read_param(parser: AttrParser) -> AllToAllParam:
    axes = read_axes(parser)
    parser.parse_punctuation(":")
    source = read_integer(parser)
    parser.parse_punctuation("->")
    return AllToAllParam(axes, source, read_integer(parser))


def _read_factors(parser: AttrParser) -> tuple[int, ...]:
    """One dimension of a rule: `jk`, factors 1 and 2."""
    start = parser.pos
    word = parser.parse_identifier(context_msg=" for a factor")
    found: list[str] = _FACTOR.findall(word)
    if "".join(found) != word:
        parser.raise_error(f"a factor is written i … z, z_1 …, got: {word}", start, parser.pos)
    return tuple(map(factor_number, found))


def _read_factor(parser: AttrParser) -> int:
    start = parser.pos
    factors = _read_factors(parser)
    if len(factors) != 1:
        parser.raise_error("expected one factor", start, parser.pos)
    return factors[0]


def _read_mappings(parser: AttrParser) -> tuple[tuple[tuple[int, ...], ...], ...]:
    read = lambda: _square(parser, _read_factors)  # noqa: E731
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, read))


def read_rule(parser: AttrParser) -> ShardingRule:
    """Reads `<([i, j], [j, k])->([i, k]) {i=2, j=4, k=8} reduction={j}>`."""

    def size(parser: AttrParser) -> tuple[int, int]:
        factor = _read_factor(parser)
        parser.parse_punctuation("=")
        return factor, read_integer(parser)

    sizes: tuple[tuple[int, int], ...] = ()
    kinds: dict[str, tuple[int, ...]] = {}
    with parser.in_angle_brackets():
        operands = _read_mappings(parser)
        parser.parse_punctuation("->")
        results = _read_mappings(parser)
        start = parser.pos
        if parser.parse_optional_punctuation("{") is not None:
            entries = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: size(parser))
            parser.parse_punctuation("}")
            sizes = tuple(entries)
        if [factor for factor, _ in sizes] != list(range(len(sizes))):
            parser.raise_error("the sizes of factors go i, j, k …", start, parser.pos)
        for kind in FACTOR_KINDS:
            if parser.parse_optional_keyword(kind) is not None:
                parser.parse_punctuation("=")
                kinds[kind] = _braces(parser, _read_factor)
        custom = parser.parse_optional_punctuation(",") is not None
        if custom:
            parser.parse_keyword("custom")
    plain = tuple(number for _, number in sizes)
    return ShardingRule(plain, operands, results, **kinds, is_custom=custom)


# --- attributes ----------------------------------------------------------------------------


@irdl_attr_definition
class MeshAttr(Data[MeshValue]):
    """`#sdy.mesh<["x"=2, "y"=4]>`."""

    name = "sdy.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MeshValue:
        return read_mesh(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@irdl_attr_definition
class ShardingAttr(Data[Sharding]):
    """`#sdy.sharding<@mesh, [{"x"}, {?}]>`: how one tensor is cut."""

    name = "sdy.sharding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sharding:
        return read_sharding(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@irdl_attr_definition
class ShardingPerValueAttr(Data[tuple[Sharding, ...]]):
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}]>, …]>`: one sharding for each value."""

    name = "sdy.sharding_per_value"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Sharding, ...]:
        with parser.in_angle_brackets():
            return cls.parse_list(parser)

    @classmethod
    def parse_list(cls, parser: AttrParser) -> tuple[Sharding, ...]:
        """Reads `[<@mesh, [{"x"}]>, …]`, also the form inside a pretty op."""
        return _square(parser, _read_element)

    def list_text(self) -> str:
        """`[<@mesh, [{"x"}]>, …]`."""
        return f"[{', '.join(map(str, self.data))}]"

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.list_text()}>")


@irdl_attr_definition
class OpShardingRuleAttr(Data[ShardingRule]):
    """`#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=4, k=8} reduction={j}>`."""

    name = "sdy.op_sharding_rule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ShardingRule:
        return read_rule(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


class _AxesAttr(Data[tuple[AxisRef, ...]], OpaqueSyntaxAttribute):
    @property
    def names(self) -> tuple[str, ...]:
        """The axes by name."""
        return tuple(axis.name for axis in self.data)

    def list_text(self) -> str:
        """`{"x", "y"}`."""
        return axes_text(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[AxisRef, ...]:
        return read_axes(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.list_text())


@irdl_attr_definition
class ManualAxesAttr(_AxesAttr):
    """`#sdy<manual_axes{"x"}>`: over which (whole) axes a computation is for each device."""

    name = "sdy.manual_axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[AxisRef, ...]:
        return _braces(parser, lambda p: AxisRef(read_string(p, " for an axis")))


@irdl_attr_definition
class AxisRefListAttr(_AxesAttr):
    """`#sdy<axis_ref_list{"x", "y":(1)2}>`."""

    name = "sdy.axis_ref_list"


@irdl_attr_definition
class ListOfAxisRefListsAttr(Data[tuple[tuple[AxisRef, ...], ...]], OpaqueSyntaxAttribute):
    """`#sdy<list_of_axis_ref_lists[{"x"}, {}]>`: axes for each dimension."""

    name = "sdy.list_of_axis_ref_lists"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[AxisRef, ...], ...]:
        return _square(parser, read_axes)

    def list_text(self) -> str:
        """`[{"x"}, {}]`."""
        return f"[{', '.join(map(axes_text, self.data))}]"

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.list_text())


@irdl_attr_definition
class AllToAllParamListAttr(Data[tuple[AllToAllParam, ...]], OpaqueSyntaxAttribute):
    """`#sdy<all_to_all_param_list[{"x"}: 0->1]>`."""

    name = "sdy.all_to_all_param_list"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[AllToAllParam, ...]:
        return _square(parser, _read_param)

    def list_text(self) -> str:
        """`[{"x"}: 0->1]`."""
        return f"[{', '.join(map(str, self.data))}]"

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.list_text())


@irdl_attr_definition
class PropagationEdgesAttr(Data[str]):
    """`#sdy.propagation_edges<…>`: Shardy's diary of a propagation, carried as text."""

    name = "sdy.propagation_edges"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


ATTRIBUTES: list[type[Attribute]] = [
    AllToAllParamListAttr,
    AxisRefListAttr,
    ListOfAxisRefListsAttr,
    ManualAxesAttr,
    MeshAttr,
    OpShardingRuleAttr,
    PropagationEdgesAttr,
    ShardingAttr,
    ShardingPerValueAttr,
]
