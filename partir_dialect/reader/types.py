"""Which type does this text say?

Every distinct text is parsed once. Builtin types are ours; what a dialect spells goes to its
class in the context, or is kept as it stands.
"""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    FunctionType,
    IndexType,
    IntegerType,
    NoneAttr,
    NoneType,
    Signedness,
    TensorType,
    TupleType,
    UnrankedTensorType,
    UnregisteredAttr,
    VectorType,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ..dtypes import FLOAT_TYPES
from .scanner import Scanner

# A type without nested brackets, or with one pair: what nearly all types are.
_QUICK = re.compile(r"(?a)(?:tensor|complex|vector)<[^<>()\[\]{}\"]*(?:<[^<>()\[\]{}\"]*>)?>")
_BARE = re.compile(r"(?a)[A-Za-z]\w*")
_INTEGER = re.compile(r"(?a)(s|u)?i([1-9]\d{0,7})\Z")
_DIMENSION = re.compile(r"(?a)(\d+|\?)\s*x\s*")
_DIALECT_SYMBOL = re.compile(r"(?a)[A-Za-z_][\w$]*(?:\.[\w$-]+)*")
_SIGNS = {None: Signedness.SIGNLESS, "s": Signedness.SIGNED, "u": Signedness.UNSIGNED}
CLOSED_DIALECTS = frozenset(("builtin", "chlo", "func", "partir", "quant", "sdy", "stablehlo"))
"""Dialects in which an unknown name is a mistake."""
_OTHER_SPELLINGS = (
    (re.compile(r"(?a)(#stablehlo\.\w+<.*),(\s*>)\Z", re.DOTALL), r"\1\2"),
    (re.compile(r"(?a)(?<=[\[,])(\s*)#sdy\.sharding(?=<)"), r"\1"),
)
"""What MLIR also reads: a comma after a struct's last field, a list of whole shardings."""
_MAX_DIMENSION = (1 << 63) - 1
_DYNAMIC = -1


class TypeReader(Scanner):
    """The part of the reader that knows types."""

    def __init__(self, text: str, filename: str, op_context: Context) -> None:
        super().__init__(text, filename)
        self.op_context = op_context
        self.context = op_context.clone()
        self.context.allow_unregistered = True
        self.type_memo: dict[str, Attribute] = {}
        self.symbol_memo: dict[str, Attribute] = {}

    # Hooks that the attribute reader fills in

    def attribute(self) -> Attribute:
        raise NotImplementedError

    def alias(self, sigil: str, name: str, at: int) -> Attribute:
        raise NotImplementedError

    # Types

    def type_(self) -> Attribute:
        """A type. Raises `ReadError` where there is none."""
        self.skip()
        start = self.pos
        if quick := _QUICK.match(self.text, start):
            text = quick[0]
            if (found := self.type_memo.get(text)) is not None:
                self.pos = quick.end()
                return found
            found = self._uncached_type()
            if self.pos == quick.end() and "#" not in text and "!" not in text:
                self.type_memo[text] = found
            return found
        return self._uncached_type()

    def _uncached_type(self) -> Attribute:
        self.skip()
        start = self.pos
        if self.text.startswith("!", start):
            return self._dialect_type()
        if self.text.startswith("(", start):
            return self.nested(self.function_type)
        bare = self.match(_BARE)
        if bare is None:
            self.fail(f"expected a type, got: {self.found()}")
        word = bare[0]
        if (simple := self._simple_type(word)) is not None:
            return simple
        reader = _CONTAINERS.get(word)
        if reader is not None and self.peek("<"):
            return self.nested(lambda: reader(self, start))
        if self.peek("<"):
            self.balanced()
            return self.foreign(self.text[start : self.pos], start, is_type=True)
        self.fail(f"expected a type, got: {word}", start)

    def _simple_type(self, word: str) -> Attribute | None:
        if (found := self.type_memo.get(word)) is not None:
            return found
        if match := _INTEGER.match(word):
            if int(match[2]) >= 1 << 24:
                self.fail(f"integer type is too wide, got: {word}", self.pos - len(word))
            found = IntegerType(int(match[2]), _SIGNS[match[1]])
        elif word == "index":
            found = IndexType()
        elif word == "none":
            found = NoneType()
        elif word in ("f80", "f128"):
            found = builtin.f80 if word == "f80" else builtin.f128
        else:
            found = FLOAT_TYPES.get(word)
        if found is not None:
            self.type_memo[word] = found
        return found

    def function_type(self) -> Attribute:
        """`(t, …) -> t` or `(t, …) -> (t, …)`."""
        inputs, outputs = self.signature()
        key = repr((tuple(map(id, inputs)), tuple(map(id, outputs))))
        found = self.type_memo.get(key)
        if found is None:
            found = self.type_memo[key] = FunctionType.from_lists(inputs, outputs)
        return found

    def signature(self) -> tuple[list[Attribute], list[Attribute]]:
        """The operand and result types of `(t, …) -> t`."""
        self.expect("(")
        inputs = self.comma_list(")", self.type_)
        self.expect("->")
        return inputs, self.result_types()

    def result_types(self) -> list[Attribute]:
        """One type, or several in parentheses."""
        if self.accept("("):
            return self.comma_list(")", self.type_)
        return [self.type_()]

    # Containers

    def dimensions(self, *, dynamic: bool = True) -> list[int]:
        """`2x?x3x`: the sizes, -1 for a dynamic one."""
        sizes: list[int] = []
        while match := self.match(_DIMENSION):
            if match[1] == "?":
                if not dynamic:
                    self.fail("expected a static size, got: ?", match.start())
                sizes.append(_DYNAMIC)
                continue
            if len(match[1]) > 19 or (size := int(match[1])) > _MAX_DIMENSION:
                self.fail(f"dimension is too large, got: {match[1][:40]}", match.start())
            sizes.append(size)
        return sizes

    def tensor_type(self, start: int) -> Attribute:
        self.expect("<")
        if self.accept("*"):
            self.expect("x")
            element = self.type_()
            self.expect(">")
            return UnrankedTensorType(element)
        sizes = self.dimensions()
        at = self.pos
        element = self.type_()
        if isinstance(element, TensorType | FunctionType | TupleType | NoneType):
            self.fail(f"invalid tensor element type, got: {element}", at)
        encoding: Attribute = NoneAttr()
        if self.accept(","):
            encoding = self.attribute()
        self.expect(">", "at the end of a tensor type")
        if encoding == NoneAttr():
            return TensorType(element, sizes)
        return TensorType(element, sizes, encoding)

    def complex_type(self, start: int) -> Attribute:
        self.expect("<")
        at = self.pos
        element = self.type_()
        if not isinstance(element, IntegerType) and element not in _FLOAT_SET:
            self.fail(f"invalid element type of complex, got: {element}", at)
        self.expect(">", "at the end of a complex type")
        return ComplexType(cast(Any, element))

    def tuple_type(self, start: int) -> Attribute:
        self.expect("<")
        return TupleType(ArrayAttr(cast("list[TypeAttribute]", self.comma_list(">", self.type_))))

    def vector_type(self, start: int) -> Attribute:
        self.expect("<")
        if "[" in self.text[self.pos : self.pos + 40].split(">")[0]:
            self.pos -= 1
            self.balanced()
            return self.foreign(self.text[start : self.pos], start, is_type=True)
        sizes = self.dimensions(dynamic=False)
        element = self.type_()
        self.expect(">", "at the end of a vector type")
        return VectorType(cast(Any, element), sizes)

    # What dialects spell

    def _dialect_type(self) -> Attribute:
        start = self.pos
        self.pos += 1
        name = self.need(_DIALECT_SYMBOL, "the name of a type")[0]
        if "." not in name and not self.text.startswith("<", self.pos):
            return self.alias("!", name, start)
        return self.dialect_symbol(start, name, is_type=True)

    def dialect_symbol(self, start: int, name: str, *, is_type: bool) -> Attribute:
        """The attribute or type whose sigil is at `start` and whose name has been read."""
        if self.text.startswith("<", self.pos):
            self.balanced()
        return self.foreign(self.text[start : self.pos], start, is_type=is_type)

    def foreign(self, text: str, start: int, *, is_type: bool) -> Attribute:
        """What xDSL, with the dialects of the context, makes of this text."""
        if (found := self.symbol_memo.get(text)) is not None:
            return found
        spelled = text
        for pattern, replacement in _OTHER_SPELLINGS:
            spelled = pattern.sub(replacement, spelled)
        parser = Parser(self.context, spelled, self.file)
        try:
            found = parser.parse_type() if is_type else parser.parse_attribute()
        except ParseError as error:
            self.fail(error.args[1] if len(error.args) > 1 else str(error), start)
        except (VerifyException, ValueError, NotImplementedError) as error:
            self.fail(str(error).split("\n", maxsplit=1)[0], start)
        self._check_known(found, start)
        self.symbol_memo[text] = found
        return found

    def _check_known(self, found: Attribute, start: int) -> None:
        """An attribute of a dialect that is known must be known itself."""
        if isinstance(found, UnregisteredAttr):
            name = found.attr_name.data
            if name.partition(".")[0] in CLOSED_DIALECTS:
                self.fail(f"unknown attribute or type, got: {name}", start)


_FLOAT_SET = set(FLOAT_TYPES.values())
_CONTAINERS = {
    "tensor": TypeReader.tensor_type,
    "complex": TypeReader.complex_type,
    "tuple": TypeReader.tuple_type,
    "vector": TypeReader.vector_type,
}
