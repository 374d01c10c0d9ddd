"""Which attributes and types does StableHLO have, and how are they written?

Every attribute gives its parameters as Python values: `DotAttr.lhs_contracting_dimensions` is
a tuple of ints. They are read and printed as MLIR prints them.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .stablehlo_structs import (
    Enum,
    Part,
    Struct,
    attribute,
    boolean,
    dims,
    float_text,
    integer,
    list_text,
    needed_dims,
    read_integer,
    read_list,
    string,
    type_,
)

# --- types ---------------------------------------------------------------------------------


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!stablehlo.token`: the order of side effects, carried as a value."""

    name = "stablehlo.token"


@irdl_attr_definition
class FutureType(Data[tuple[Attribute, ...]], TypeAttribute):
    """`!stablehlo.future<tensor<2xf32>>`: what an `async_start` will give."""

    name = "stablehlo.future"

    @property
    def types(self) -> tuple[Attribute, ...]:
        """The types of the values to come."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(map(str, self.data))}>")


# --- enumerations --------------------------------------------------------------------------


@irdl_attr_definition
class ComparisonDirectionAttr(Enum):
    """Which comparison a `compare` makes."""

    name = "stablehlo.comparison_direction"
    words = ("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(Enum):
    """As what the operands of a `compare` are taken."""

    name = "stablehlo.comparison_type"
    words = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(Enum):
    """How exact a dot or convolution has to be."""

    name = "stablehlo.precision"
    words = ("DEFAULT", "HIGH", "HIGHEST")


@irdl_attr_definition
class FftTypeAttr(Enum):
    """Which transform an `fft` makes."""

    name = "stablehlo.fft_type"
    words = ("FFT", "IFFT", "RFFT", "IRFFT")


@irdl_attr_definition
class TransposeAttr(Enum):
    """What a `triangular_solve` does to its matrix first."""

    name = "stablehlo.transpose"
    words = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@irdl_attr_definition
class RngDistributionAttr(Enum):
    """What an `rng` draws from."""

    name = "stablehlo.rng_distribution"
    words = ("UNIFORM", "NORMAL")


@irdl_attr_definition
class RngAlgorithmAttr(Enum):
    """How an `rng_bit_generator` makes its bits."""

    name = "stablehlo.rng_algorithm"
    words = ("DEFAULT", "THREE_FRY", "PHILOX")


@irdl_attr_definition
class ResultAccuracyModeAttr(Data[str]):
    """`#stablehlo.result_accuracy_mode<TOLERANCE>`."""

    name = "stablehlo.result_accuracy_mode"
    words: ClassVar[tuple[str, ...]] = ("DEFAULT", "HIGHEST", "TOLERANCE")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_keyword_in(cls.words)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


# --- dimension numbers ---------------------------------------------------------------------


@irdl_attr_definition
class DotAttr(Struct):
    """Which dimensions a `dot_general` contracts, and over which it is a batch."""

    name = "stablehlo.dot"
    lhs_batching_dimensions = dims()
    rhs_batching_dimensions = dims()
    lhs_contracting_dimensions = dims()
    rhs_contracting_dimensions = dims()


@irdl_attr_definition
class GatherAttr(Struct):
    """Where the dimensions of a `gather`'s operand, indices and result correspond."""

    name = "stablehlo.gather"
    offset_dims = dims()
    collapsed_slice_dims = dims()
    operand_batching_dims = dims()
    start_indices_batching_dims = dims()
    start_index_map = dims()
    index_vector_dim = integer(0)


@irdl_attr_definition
class ScatterAttr(Struct):
    """Where the dimensions of a `scatter`'s inputs, indices and updates correspond."""

    name = "stablehlo.scatter"
    update_window_dims = dims()
    inserted_window_dims = dims()
    input_batching_dims = dims()
    scatter_indices_batching_dims = dims()
    scatter_dims_to_operand_dims = dims()
    index_vector_dim = integer(0)


_CONV_RAW = (
    "input_batch_dimension",
    "input_feature_dimension",
    "input_spatial_dimensions",
    "kernel_input_feature_dimension",
    "kernel_output_feature_dimension",
    "kernel_spatial_dimensions",
    "output_batch_dimension",
    "output_feature_dimension",
    "output_spatial_dimensions",
)


class ConvNumbers(NamedTuple):
    """The dimension numbers of a convolution, under MLIR's names."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]


@irdl_attr_definition
class ConvAttr(Data[ConvNumbers]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`.

    `.data` has every dimension number by name. Letters say which dimension is the batch and the
    features (input `b`/`f`, kernel `i`/`o`, output `b`/`f`), numbers which spatial one it is.
    """

    name = "stablehlo.conv"

    @property
    def input_batch_dimension(self) -> int:
        """The batch dimension of the left operand."""
        return self.data.input_batch_dimension

    @property
    def input_feature_dimension(self) -> int:
        """The feature dimension of the left operand."""
        return self.data.input_feature_dimension

    @property
    def input_spatial_dimensions(self) -> tuple[int, ...]:
        """The spatial dimensions of the left operand, in order."""
        return self.data.input_spatial_dimensions

    @property
    def kernel_input_feature_dimension(self) -> int:
        """The input feature dimension of the kernel."""
        return self.data.kernel_input_feature_dimension

    @property
    def kernel_output_feature_dimension(self) -> int:
        """The output feature dimension of the kernel."""
        return self.data.kernel_output_feature_dimension

    @property
    def kernel_spatial_dimensions(self) -> tuple[int, ...]:
        """The spatial dimensions of the kernel, in order."""
        return self.data.kernel_spatial_dimensions

    @property
    def output_batch_dimension(self) -> int:
        """The batch dimension of the result."""
        return self.data.output_batch_dimension

    @property
    def output_feature_dimension(self) -> int:
        """The feature dimension of the result."""
        return self.data.output_feature_dimension

    @property
    def output_spatial_dimensions(self) -> tuple[int, ...]:
        """The spatial dimensions of the result, in order."""
        return self.data.output_spatial_dimensions

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvNumbers:
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("raw") is not None:
                return cls._parse_raw(parser)
            return cls.parse_short(parser)

    @classmethod
    def parse_short(cls, parser: AttrParser) -> ConvNumbers:
        """Reads `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, also the form inside a pretty op."""
        lhs = _conv_side(parser, "bf")
        parser.parse_keyword("x")
        kernel = _conv_side(parser, "io")
        parser.parse_punctuation("->")
        return ConvNumbers(*lhs, *kernel, *_conv_side(parser, "bf"))

    @classmethod
    def _parse_raw(cls, parser: AttrParser) -> ConvNumbers:
        found: dict[str, Any] = {}

        def entry() -> None:
            key = parser.parse_keyword_in(_CONV_RAW, " in raw dimension numbers")
            parser.parse_punctuation("=")
            many = key.endswith("s")
            found[key] = read_list(parser, read_integer) if many else read_integer(parser)

        parser.parse_comma_separated_list(parser.Delimiter.NONE, entry)
        missing = [key for key in _CONV_RAW if key not in found]
        if missing:
            parser.raise_error(f"raw dimension numbers need {missing[0]}")
        return ConvNumbers(**found)

    def short(self) -> str:
        """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        d = self.data
        return (
            f"{_side_text('bf', *d[0:3])}x{_side_text('io', *d[3:6])}->{_side_text('bf', *d[6:9])}"
        )

    def is_short(self) -> bool:
        """Whether every side names each dimension exactly once, so that `short` can say it."""
        d = self.data
        return all(
            sorted((a, b, *s)) == list(range(len(s) + 2)) for a, b, s in (d[0:3], d[3:6], d[6:9])
        )

    def print_parameter(self, printer: Printer) -> None:
        if self.is_short():
            printer.print_string(f"<{self.short()}>")
            return
        pairs = zip(_CONV_RAW, self.data, strict=True)
        text = ", ".join(f"{k} = {list_text(v) if isinstance(v, tuple) else v}" for k, v in pairs)
        printer.print_string(f"<raw {text}>")


def _conv_side(parser: AttrParser, letters: str) -> tuple[int, int, tuple[int, ...]]:
    """One `[b, 0, 1, f]`: the positions of the two letters, and of spatial dimensions 0, 1, …"""
    start = parser.pos

    def entry() -> str:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        return str(number) if number is not None else parser.parse_keyword_in(tuple(letters))

    found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry)
    places = {word: position for position, word in enumerate(found)}
    wanted = (*letters, *map(str, range(len(found) - 2)))
    for word in wanted:
        if word not in places:
            parser.raise_error(
                f"dimension {word} is missing among [{', '.join(found)}]", start, parser.pos
            )
    return places[letters[0]], places[letters[1]], tuple(places[word] for word in wanted[2:])


def _side_text(letters: str, first: Any, second: Any, spatial: Any) -> str:
    words = [""] * (len(spatial) + 2)
    words[first], words[second] = letters
    for number, place in enumerate(spatial):
        words[place] = str(number)
    return list_text(words)


# --- other structures ----------------------------------------------------------------------


@irdl_attr_definition
class ChannelHandleAttr(Struct):
    """Which channel a communication uses; type 1 is device to device."""

    name = "stablehlo.channel_handle"
    handle = integer()
    type = integer()


@irdl_attr_definition
class DotAlgorithmAttr(Struct):
    """In which types, and in how many parts, a dot multiplies and accumulates."""

    name = "stablehlo.dot_algorithm"
    lhs_precision_type = type_()
    rhs_precision_type = type_()
    accumulation_type = type_()
    lhs_component_count = integer()
    rhs_component_count = integer()
    num_primitive_operations = integer()
    allow_imprecise_accumulation = boolean()


@irdl_attr_definition
class OutputOperandAliasAttr(Struct):
    """Which operand a result of a `custom_call` shares its memory with."""

    name = "stablehlo.output_operand_alias"
    output_tuple_indices = needed_dims()
    operand_index = integer()
    operand_tuple_indices = needed_dims()


def _accuracy() -> Part[float]:
    return Part(lambda p: float(p.parse_number()), float_text, default=(0.0,))


@irdl_attr_definition
class ResultAccuracyAttr(Struct):
    """How far an elementwise result may be off: absolute, relative, in units of last place."""

    name = "stablehlo.result_accuracy"
    atol = _accuracy()
    rtol = _accuracy()
    ulps = integer(0)
    mode = attribute()


@irdl_attr_definition
class BoundsAttr(Data[tuple[int | None, ...]]):
    """`#stablehlo.bounds<3, ?>`: the largest size of each dynamic dimension, or None."""

    name = "stablehlo.bounds"

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """One bound a dimension."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int | None, ...]:
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _bound(parser))
        )

    def print_parameter(self, printer: Printer) -> None:
        text = ", ".join("?" if bound is None else str(bound) for bound in self.data)
        printer.print_string(f"<{text}>")


def _bound(parser: AttrParser) -> int | None:
    if parser.parse_optional_punctuation("?") is not None:
        return None
    return parser.parse_integer(allow_boolean=False)


@irdl_attr_definition
class TypeExtensionsAttr(Data[tuple[int | None, ...]]):
    """`#stablehlo.type_extensions<bounds = [3, ?]>`, the older spelling of `BoundsAttr`.

    Making one gives the `BoundsAttr`: MLIR reads both and prints the newer.
    """

    name = "stablehlo.type_extensions"

    def __new__(cls, data: tuple[int | None, ...]) -> Any:
        return BoundsAttr(data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int | None, ...]:
        with parser.in_angle_brackets():
            parser.parse_keyword("bounds")
            parser.parse_punctuation("=")
            return read_list(parser, _bound)

    def print_parameter(self, printer: Printer) -> None:
        raise AssertionError("type_extensions is read as bounds")


# --- meshes inside replica groups ----------------------------------------------------------


@irdl_attr_definition
class MeshAxisAttr(Struct):
    """An axis of a mesh and its size."""

    name = "stablehlo.mesh_axis"
    name_ = string()
    size = integer()


@irdl_attr_definition
class MeshAttr(Struct):
    """`#stablehlo.mesh<axes=[<name = "x", size = 2>], device_ids=…>`."""

    name = "stablehlo.mesh"
    equals = "="
    axes: Part[tuple[MeshAxisAttr, ...]] = Part(
        lambda p: read_list(p, _mesh_axis),
        lambda axes: list_text(f"<{axis.body()}>" for axis in axes),
        convert=tuple,
    )
    device_ids: Part[Attribute | None] = Part(lambda p: p.parse_attribute(), default=(None,))


def _mesh_axis(parser: AttrParser) -> MeshAxisAttr:
    axis = parser.parse_optional_attribute()
    if axis is None:
        return MeshAxisAttr(MeshAxisAttr.parse_parameter(parser))
    if not isinstance(axis, MeshAxisAttr):
        parser.raise_error(f"expected a mesh axis, got: {axis}")
    return axis


def _sub_axis(parser: AttrParser) -> tuple[int, int] | None:
    with parser.in_parens():
        before = read_integer(parser)
    return before, read_integer(parser)


@irdl_attr_definition
class AxisRefAttr(Struct):
    """An axis of a mesh, or a part of one: `(1)2` are 2 pieces after 1."""

    name = "stablehlo.axis_ref"
    name_ = string()
    sub_axis_info: Part[tuple[int, int] | None] = Part(
        _sub_axis, lambda sub: f"({sub[0]}){sub[1]}" if sub else "", default=(None,)
    )


def _axes(parser: AttrParser) -> tuple[Attribute, ...]:
    return read_list(parser, lambda p: p.parse_attribute())


@irdl_attr_definition
class ReplicaGroupMeshAxesAttr(Struct):
    """Replica groups said by mesh axes: a mesh (or the symbol of one) and the axes that vary."""

    name = "stablehlo.replica_group_mesh_axes"
    mesh = attribute()
    axes: Part[tuple[Attribute, ...]] = Part(_axes, list_text, convert=tuple)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The axes by name (an axis reference by the axis it is a part of)."""
        return tuple(
            axis.name_ if isinstance(axis, AxisRefAttr) else axis.data
            for axis in self.axes
            if isinstance(axis, (AxisRefAttr, StringAttr))
        )


ATTRIBUTES: list[type[Attribute]] = [
    AxisRefAttr,
    BoundsAttr,
    ChannelHandleAttr,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    ConvAttr,
    DotAlgorithmAttr,
    DotAttr,
    FftTypeAttr,
    FutureType,
    GatherAttr,
    MeshAttr,
    MeshAxisAttr,
    OutputOperandAliasAttr,
    PrecisionAttr,
    ReplicaGroupMeshAxesAttr,
    ResultAccuracyAttr,
    ResultAccuracyModeAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    ScatterAttr,
    TokenType,
    TransposeAttr,
    TypeExtensionsAttr,
]
