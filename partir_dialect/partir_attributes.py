"""How are meshes, nests, actions and borders written in the IR? Wrappers over frozen values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .errors import MeshError
from .mesh import Mesh
from .placement import Placement
from .rules.base import REDUCERS

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"
_LETTER = re.compile(r"([a-z])(\d*)\Z")


def factor_letter(index: int) -> str:
    """The letter of a factor: i, j, … z, a, … h, then i1, j1, …"""
    round_, position = divmod(index, len(_LETTERS))
    return _LETTERS[position] + (str(round_) if round_ else "")


def factor_index(letter: str) -> int | None:
    """The factor that `letter` names, or None if it is no letter of a factor."""
    match = _LETTER.match(letter)
    if not match:
        return None
    return _LETTERS.index(match[1]) + len(_LETTERS) * int(match[2] or 0)


@dataclass(frozen=True, slots=True)
class NestEntry:
    """One loop of a nest: `axis` runs along a factor, or the op is in a loop that others close.

    One of three: `factor` is an index into the factors of the op's rule; `pending` is the reducer
    of a sum that the operands bring and the result carries on; neither means that all iterations do
    the same (`any`). On an argument, a result or a loop's carry the factors are the dimensions.
    """

    axis: str
    factor: int | None = None
    pending: str | None = None

    def __str__(self) -> str:
        if self.factor is not None:
            return f"{self.axis}: {factor_letter(self.factor)}"
        return f"{self.axis}: pending {self.pending}" if self.pending else f"{self.axis}: any"


def parse_axis(parser: AttrParser) -> str:
    """Reads the name of an axis, bare or in quotes."""
    return parser.parse_identifier_or_str_literal(" for the name of a mesh axis")


def _parse_entry(parser: AttrParser) -> NestEntry:
    axis = parse_axis(parser)
    parser.parse_punctuation(":")
    start = parser.pos
    word = parser.parse_identifier()
    if word == "any":
        return NestEntry(axis)
    if word == "pending":
        return NestEntry(axis, pending=parser.parse_identifier())
    factor = factor_index(word)
    if factor is None:
        parser.raise_error(
            f"a nest entry is a factor's letter, 'any' or 'pending <reducer>', got: {word}",
            start,
            parser.pos,
        )
    return NestEntry(axis, factor)


@irdl_attr_definition
class NestAttr(Data[tuple[NestEntry, ...]]):
    """The loop nest of one op, outermost first: which axis runs along which of its factors.

    `#partir.nest<[batch: i, model: k]>`, `#partir.nest<[model: pending add]>`, `#partir.nest<[]>`.
    The letters i, j, k, … are the factors of the op's rule in order.
    """

    name = "partir.nest"

    def __init__(self, entries: Iterable[NestEntry | tuple[str, int]] = ()) -> None:
        super().__init__(tuple(e if isinstance(e, NestEntry) else NestEntry(*e) for e in entries))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[NestEntry, ...]:
        with parser.in_angle_brackets():
            entries = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse_entry(parser)
            )
        return tuple(entries)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")

    def verify(self) -> None:
        axes = [entry.axis for entry in self.data]
        for entry in self.data:
            if axes.count(entry.axis) > 1:
                raise VerifyException(f"an axis never nests in itself, got: {entry.axis} twice")
            if entry.pending is not None and entry.pending not in REDUCERS:
                raise VerifyException(_no_reducer(entry.pending))

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the nest, outermost first."""
        return tuple(entry.axis for entry in self.data)


def _no_reducer(name: str) -> str:
    return f"a reducer is one of {', '.join(sorted(REDUCERS))}, got: {name}"


def check_reducer(name: str) -> None:
    """Raises `VerifyException` unless `name` is a reducer."""
    if name not in REDUCERS:
        raise VerifyException(_no_reducer(name))


@irdl_attr_definition
class MeshAttr(Data[Mesh]):
    """The mesh of a module, in device order: `#partir.mesh<"batch"=4, "model"=2>`."""

    name = "partir.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Mesh:
        start = parser.pos
        pairs = parser.parse_comma_separated_list(
            parser.Delimiter.ANGLE, lambda: _parse_mesh_axis(parser)
        )
        try:
            return Mesh(pairs)
        except MeshError as error:
            parser.raise_error(error.message, start, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        axes = ", ".join(f'"{name}"={size}' for name, size in self.data.axes)
        printer.print_string(f"<{axes}>")


def _parse_mesh_axis(parser: AttrParser) -> tuple[str, int]:
    axis = parse_axis(parser)
    parser.parse_punctuation("=")
    return axis, parser.parse_integer(allow_boolean=False)


@irdl_attr_definition
class RangeType(ParametrizedAttribute, TypeAttribute):
    """The index of a loop over `size` iterations: `!partir.range<4>`."""

    name = "partir.range"
    size: IntAttr = param_def()

    def __init__(self, size: int | IntAttr) -> None:
        super().__init__(size if isinstance(size, IntAttr) else IntAttr(size))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.size.data}>")

    def verify(self) -> None:
        if self.size.data < 1:
            raise VerifyException(f"a range has at least 1 iteration, got: {self.size.data}")


@irdl_attr_definition
class TileAttr(ParametrizedAttribute):
    """The iterations are concatenated along dimension `dimension`: `#partir.tile<0>`."""

    name = "partir.tile"
    dimension: IntAttr = param_def()

    def __init__(self, dimension: int | IntAttr) -> None:
        super().__init__(dimension if isinstance(dimension, IntAttr) else IntAttr(dimension))

    @property
    def dim(self) -> int:
        return self.dimension.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.dimension.data}>")

    def verify(self) -> None:
        if self.dimension.data < 0:
            raise VerifyException(f"a dimension is at least 0, got: {self.dimension.data}")


class ReduceAction(ParametrizedAttribute):
    """The iterations are partial results, combined by `reducer`."""

    REDUCER: ClassVar[str]

    @property
    def reducer(self) -> str:
        """The operation that combines: a member of `REDUCERS`."""
        return self.REDUCER


@irdl_attr_definition
class SumAttr(ReduceAction):
    """The sum of the iterations: `#partir.sum`."""

    name = "partir.sum"
    REDUCER = "add"


@irdl_attr_definition
class MaxAttr(ReduceAction):
    """The largest of the iterations: `#partir.max`."""

    name = "partir.max"
    REDUCER = "max"


@irdl_attr_definition
class MinAttr(ReduceAction):
    """The smallest of the iterations: `#partir.min`."""

    name = "partir.min"
    REDUCER = "min"


@irdl_attr_definition
class MulAttr(ReduceAction):
    """The product of the iterations: `#partir.mul`."""

    name = "partir.mul"
    REDUCER = "mul"


@irdl_attr_definition
class AndAttr(ReduceAction):
    """The conjunction of the iterations, bit by bit: `#partir.and`."""

    name = "partir.and"
    REDUCER = "and"


@irdl_attr_definition
class OrAttr(ReduceAction):
    """The disjunction of the iterations, bit by bit: `#partir.or`."""

    name = "partir.or"
    REDUCER = "or"


@irdl_attr_definition
class AnyAttr(ParametrizedAttribute):
    """All iterations agree: `#partir.any`."""

    name = "partir.any"


Action = TileAttr | ReduceAction | AnyAttr
REDUCE_ACTIONS: dict[str, type[ReduceAction]] = {
    action.REDUCER: action for action in (SumAttr, MaxAttr, MinAttr, MulAttr, AndAttr, OrAttr)
}


_BORDER = re.compile(r"(?:(.+): )?((?:\d+x)*)([^\s:]+) \[([^\[\]]*)\]\Z", re.DOTALL)
_BORDER_DIM = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Border:
    """How one global argument or result of an SPMD program maps to its local one.

    The text is `params/w: 256x16xf32 [{batch}, {model}]`: the flat name (if there is one), the
    global shape and element type, and for each dimension the axes that tile it, major to minor. A
    tile is ceil(size / tiles), in each dimension axis by axis; what lies beyond the global size is
    padding, at the tail.
    """

    shape: tuple[int, ...]
    element: str
    dims: tuple[tuple[str, ...], ...]
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Border:
        """Reads the text form; raises `ValueError` if it is none."""
        match = _BORDER.match(text)
        if not match:
            raise ValueError(f"a border is written '256x16xf32 [{{batch}}, {{}}]', got: {text!r}")
        shape = tuple(int(size) for size in match[2].split("x") if size)
        dims = tuple(
            tuple(axis.strip() for axis in dim.split(",") if axis.strip())
            for dim in _BORDER_DIM.findall(match[4])
        )
        border = cls(shape, match[3], dims, match[1] or "")
        if len(dims) != len(shape) or str(border) != text:
            raise ValueError(f"a border tiles each dimension of its shape, got: {text!r}")
        return border

    @property
    def placement(self) -> Placement:
        """The placement of the global value at the border."""
        return Placement(self.dims)

    def local_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """The shape of the tile of one device."""
        return self.placement.local_shape(self.shape, mesh)

    def __str__(self) -> str:
        shape = "".join(f"{size}x" for size in self.shape)
        dims = ", ".join("{" + ",".join(axes) + "}" for axes in self.dims)
        name = f"{self.name}: " if self.name else ""
        return f"{name}{shape}{self.element} [{dims}]"
