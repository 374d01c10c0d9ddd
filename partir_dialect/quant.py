"""How are quantised types carried through? As the text that they were read with."""

from __future__ import annotations

from abc import ABC

from xdsl.ir import Attribute, Data, Dialect, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


class QuantizedType(Data[str], TypeAttribute, ABC):
    """A type of the `quant` dialect: what stands between its angle brackets, untouched."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class UniformType(QuantizedType):
    """`!quant.uniform<i8:f32, 0.1:-30>`: value = scale · (stored − zero point)."""

    name = "quant.uniform"

    @property
    def storage_text(self) -> str:
        """The type that is stored, as text: `i8`."""
        return self.data.split(":", 1)[0].split("<", 1)[0].strip()

    @property
    def expressed_text(self) -> str:
        """The type that is meant, as text: `f32`."""
        rest = self.data.partition(":")[2] if "<" not in self.data else self.data.partition(">:")[2]
        return rest.split(",", 1)[0].split(":", 1)[0].strip()


@irdl_attr_definition
class AnyType(QuantizedType):
    """`!quant.any<i8:f32>`: a quantised type whose parameters are not known."""

    name = "quant.any"


@irdl_attr_definition
class CalibratedType(QuantizedType):
    """`!quant.calibrated<f32<-1.0:1.0>>`: a float type with the range seen so far."""

    name = "quant.calibrated"


ATTRIBUTES: list[type[Attribute]] = [AnyType, CalibratedType, UniformType]

Quant = Dialect("quant", [], ATTRIBUTES)
