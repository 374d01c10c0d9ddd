"""How are the parameters of a dialect attribute read and written?

Most StableHLO and CHLO attributes are a list of `key = value` in angle brackets. `Struct` reads
and prints them from one line per parameter, in any order when read and in MLIR's order when
printed; `Enum` is the other shape, `#stablehlo<precision HIGH>`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

T = TypeVar("T")
U = TypeVar("U")


class Part(Generic[T]):
    """One parameter of a `Struct`: how it is read, printed and made from a Python value.

    `default` is what an absent parameter means (and is not printed); a parameter without one has
    to be written. A Python name that would clash ends in an underscore, which MLIR's has not.
    """

    def __init__(
        self,
        read: Callable[[AttrParser], T],
        text: Callable[[T], str] = str,
        *,
        default: tuple[T] | None = None,
        convert: Callable[[Any], T] | None = None,
    ) -> None:
        self.read = read
        self.text = text
        self.default = default
        self.convert = convert
        self.name = ""
        self.index = -1

    def __set_name__(self, owner: type[Struct], name: str) -> None:
        self.name = name.removesuffix("_")

    @overload
    def __get__(self, instance: None, owner: type[Struct]) -> Part[T]: ...

    @overload
    def __get__(self, instance: Struct, owner: type[Struct]) -> T: ...

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> Part[T] | T:
        return self if instance is None else instance.data[self.index]

    def shown(self, value: T) -> bool:
        """Whether MLIR prints this value."""
        return self.default is None or value != self.default[0]

    def made(self, value: Any) -> T:
        """The stored form of a Python value."""
        return value if self.convert is None else self.convert(value)


class Struct(Data[tuple[Any, ...]], ABC):
    """An attribute written `#dialect.name<key = value, …>`, its parameters as Python values."""

    parts: ClassVar[tuple[Part[Any], ...]] = ()
    equals: ClassVar[str] = " = "

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        values = cast(dict[str, Part[Any]], vars(cls)).values()
        cls.parts = tuple(value for value in values if type(value) is Part)
        for index, part in enumerate(cls.parts):
            part.index = index

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The attribute with these parameters, the others at their defaults.

        Raises `TypeError` for a name that the attribute does not have, or one that is missing.
        """
        stored: list[Any] = []
        for part in cls.parts:
            if part.name in values:
                stored.append(part.made(values.pop(part.name)))
            elif part.default is not None:
                stored.append(part.default[0])
            else:
                raise TypeError(f"{cls.name} needs the parameter {part.name!r}")
        if values:
            raise TypeError(f"{cls.name} has no parameter {next(iter(values))!r}")
        return cls(tuple(stored))

    def replaced(self, **values: Any) -> Self:
        """The same attribute with some parameters changed."""
        old = {part.name: value for part, value in zip(self.parts, self.data, strict=True)}
        return self.of(**{**old, **values})

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Any, ...]:
        found: dict[str, Any] = {}
        by_name = {part.name: part for part in cls.parts}

        def entry() -> None:
            start = parser.pos
            key = parser.parse_identifier(context_msg=f" in {cls.name}")
            if key in found or key not in by_name:
                problem = "repeated" if key in found else "unknown"
                parser.raise_error(f"{problem} parameter in {cls.name}: {key}", start, parser.pos)
            parser.parse_punctuation("=")
            found[key] = by_name[key].read(parser)

        start = parser.pos
        parser.parse_punctuation("<")
        while parser.parse_optional_punctuation(">") is None:  # MLIR takes a last comma too
            entry()
            if parser.parse_optional_punctuation(",") is None:
                parser.parse_punctuation(">", f" after a parameter of {cls.name}")
                break
        for part in cls.parts:
            if part.name not in found and part.default is None:
                parser.raise_error(f"{cls.name} needs the parameter {part.name}", start, parser.pos)
        return tuple(
            found[part.name] if part.name in found else part.default and part.default[0]
            for part in cls.parts
        )

    def body(self) -> str:
        """The text between the angle brackets."""
        return ", ".join(
            f"{part.name}{self.equals}{part.text(value)}"
            for part, value in zip(self.parts, self.data, strict=True)
            if part.shown(value)
        )

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.body()}>")


class Enum(Data[str], SpacedOpaqueSyntaxAttribute, ABC):
    """An attribute that is one of a few words: `#stablehlo<precision HIGH>`."""

    words: ClassVar[tuple[str, ...]] = ()

    @property
    def value(self) -> str:
        """The word."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return parser.parse_keyword_in(cls.words, f" in {cls.name}")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)


# --- values -------------------------------------------------------------------------------


def read_list(parser: AttrParser, read: Callable[[AttrParser], U]) -> tuple[U, ...]:
    """Reads `[a, b, …]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: read(parser)))


def read_integer(parser: AttrParser) -> int:
    """Reads an integer, which may be negative."""
    return parser.parse_integer(allow_boolean=False)


def read_string(parser: AttrParser, context: str = "") -> str:
    """Reads a quoted string; bytes that are no UTF-8 are kept as surrogates."""
    found = parser.parse_optional_bytes_literal()
    if found is None:
        return parser.parse_str_literal(context)
    return found.decode("utf-8", "surrogateescape")


def list_text(values: Iterable[object]) -> str:
    """`[1, 2]`."""
    return f"[{', '.join(map(str, values))}]"


def string_text(value: str) -> str:
    """A string in quotes, escaped as MLIR does it: backslash, quote and all but printable ASCII."""
    out: list[str] = []
    for byte in value.encode("utf-8", "surrogateescape"):
        if byte == 0x5C:
            out.append("\\\\")
        elif byte == 0x22 or not 0x20 <= byte < 0x7F:
            out.append(f"\\{byte:02X}")
        else:
            out.append(chr(byte))
    return f'"{"".join(out)}"'


def float_text(value: float) -> str:
    """A double as MLIR prints it: six decimals where they are exact, else the shortest digits."""
    short = f"{value:.6e}"
    if float(short) == value:
        return short
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, fraction = digits.partition(".")
    power = int(exponent or 0) + len(whole) - 1
    figures = (whole + fraction).lstrip("0")
    power -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0")
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{power}"


def dims() -> Part[tuple[int, ...]]:
    """A list of dimensions, empty (and then not printed) by default."""
    return Part(lambda p: read_list(p, read_integer), list_text, default=((),), convert=tuple)


def needed_dims() -> Part[tuple[int, ...]]:
    """A list of integers that is always printed."""
    return Part(lambda p: read_list(p, read_integer), list_text, convert=tuple)


def integer(default: int | None = None) -> Part[int]:
    """An integer."""
    return Part(read_integer, default=None if default is None else (default,))


def boolean() -> Part[bool]:
    """`true` or `false`."""
    return Part(lambda p: p.parse_boolean(), lambda value: str(value).lower())


def string() -> Part[str]:
    """A quoted string."""
    return Part(read_string, string_text)


def attribute() -> Part[Attribute]:
    """Any attribute, in its own text."""
    return Part(lambda p: p.parse_attribute())


def type_() -> Part[Attribute]:
    """A type."""
    return Part(lambda p: p.parse_type())
