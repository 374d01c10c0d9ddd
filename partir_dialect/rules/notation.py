"""How is a rule written as a string? `"i j, j k -> i k"`.

Values are separated by commas, dimensions by spaces, operands and results by `->`:

    ... m k, ... k n -> ... m n        a batched product; `...` is any number of leading dimensions
    b _ -> b _, b _                    `_` is a dimension that must be whole
    (g i) k -> g (i k)                 a dimension that is a product, major to minor
    i j, () -> i where j = max         `()` is a scalar; what a factor is, when not by default

A factor of a result is parallel; a factor of operands alone is a sum, unless `where` says `max`,
`min`, `mul`, `and`, `or` or `blocked`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from xdsl.ir import Operation

from ..errors import RuleError, Span
from .base import REDUCERS, Kind, Rule
from .builder import Place, RuleBuilder

_TOKEN = re.compile(r"\s*(?:(->)|(\.\.\.)|([(),=])|([A-Za-z][A-Za-z0-9]*|_|1)|(\S))")
_KINDS = {**{name: name for name in REDUCERS}, "sum": "add", "blocked": "blocked"}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Dim:
    """The factors of one dimension, major to minor; `_` is none, `...` any number of dimensions."""

    names: tuple[str, ...]
    token: _Token

    @property
    def is_ellipsis(self) -> bool:
        return self.token.text == "..."


_Values = tuple[tuple[_Dim, ...], ...]


@dataclass(frozen=True, slots=True)
class RuleText:
    """A parsed rule string; `rule_of` applies it to an op."""

    text: str
    origin: str
    operands: _Values
    results: _Values
    kinds: tuple[tuple[str, str], ...]

    def rule_of(self, op: Operation) -> Rule:
        """The rule of an op; raises `RuleError` when its shapes do not fit the string."""
        return _Application(self, op).rule()

    def fail(self, message: str, token: _Token) -> NoReturn:
        span = Span.at(self.origin, self.text, token.offset, len(token.text))
        raise RuleError(message, span=span)


def parse_rule(text: str, origin: str = "<rule>") -> RuleText:
    """Parses a rule string; raises `RuleError` with the place that is wrong."""
    return _Parser(text, origin).parse()


class _Parser:
    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin
        self.tokens = [
            _Token(match[0].strip(), match.end() - len(match[0].strip()))
            for match in _TOKEN.finditer(text)
        ]
        self.tokens.append(_Token("", len(text.rstrip())))
        self.position = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def fail(self, message: str, token: _Token, candidates: tuple[str, ...] = ()) -> NoReturn:
        span = Span.at(self.origin, self.text, token.offset, max(1, len(token.text)))
        raise RuleError(message, span=span, name=token.text, candidates=candidates)

    def take(self, text: str) -> bool:
        found = self.token.text == text
        self.position += found
        return found

    def parse(self) -> RuleText:
        operands = self.values()
        if not self.take("->"):
            self.fail(f"expected '->', got: {self.token.text!r}", self.token)
        results = self.values()
        kinds = self.clauses() if self.take("where") else ()
        if self.token.text:
            self.fail(f"expected the end of the rule, got: {self.token.text!r}", self.token)
        rule = RuleText(self.text, self.origin, operands, results, kinds)
        self.check(rule)
        return rule

    def values(self) -> _Values:
        if self.token.text in ("->", "where", ""):
            return ()
        found = [self.value()]
        while self.take(","):
            found.append(self.value())
        return tuple(found)

    def value(self) -> tuple[_Dim, ...]:
        dims: list[_Dim] = []
        start = self.token
        scalar = False
        while self.token.text not in (",", "->", "where", ""):
            dim = self.dim()
            scalar = scalar or dim is None
            if dim is not None:
                if dim.is_ellipsis and dims:
                    self.fail("'...' must come first in a value", dim.token)
                dims.append(dim)
        if not dims and not scalar:
            self.fail("expected a value; a scalar is written ()", start)
        if scalar and dims:
            self.fail("a scalar () has no dimensions beside it", start)
        return tuple(dims)

    def dim(self) -> _Dim | None:
        token = self.token
        self.position += 1
        if token.text == "...":
            return _Dim((), token)
        if token.text == "(":
            names: list[str] = []
            while not self.take(")"):
                if not self.token.text[:1].isalpha():
                    self.fail(f"expected a factor or ')', got: {self.token.text!r}", self.token)
                names.append(self.token.text)
                self.position += 1
            return _Dim(tuple(names), token) if names else None
        if token.text in ("_", "1"):
            return _Dim((), token)
        if not token.text[:1].isalpha():
            self.fail(f"expected a factor, got: {token.text!r}", token)
        return _Dim((token.text,), token)

    def clauses(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        while True:
            name = self.token
            if not name.text[:1].isalpha():
                self.fail(f"expected a factor, got: {name.text!r}", name)
            self.position += 1
            if not self.take("="):
                self.fail(f"expected '=', got: {self.token.text!r}", self.token)
            kind = self.token
            if kind.text not in _KINDS:
                self.fail(f"unknown kind of factor: {kind.text!r}", kind, tuple(_KINDS))
            self.position += 1
            found.append((name.text, _KINDS[kind.text]))
            if not self.take(","):
                return tuple(found)

    def check(self, rule: RuleText) -> None:
        """Every factor is in an operand, once in a value; clauses name factors, sums no results."""
        in_operands = {n for value in rule.operands for dim in value for n in dim.names}
        in_results = {n for value in rule.results for dim in value for n in dim.names}
        for value in (*rule.operands, *rule.results):
            seen: set[str] = set()
            for dim in value:
                for name in dim.names:
                    if name in seen:
                        self.fail(f"a factor occurs twice in one value: {name!r}", dim.token)
                    seen.add(name)
        for value in rule.results:
            for dim in value:
                for name in dim.names:
                    if name not in in_operands:
                        self.fail(f"no operand has the factor: {name!r}", dim.token)
        for name, kind in rule.kinds:
            token = next(t for t in reversed(self.tokens) if t.text == name)
            if name not in in_operands:
                self.fail(f"no operand has the factor: {name!r}", token, tuple(in_operands))
            if kind != "blocked" and name in in_results:
                self.fail(f"a result has the factor that is combined: {name!r}", token)


class _Application:
    """Fits a rule string to the shapes of one op."""

    def __init__(self, text: RuleText, op: Operation) -> None:
        self.text = text
        self.op = op
        self.builder = RuleBuilder(op)
        self.sizes: dict[str, int] = {}

    def rule(self) -> Rule:
        values = [
            *self.aligned(self.text.operands, self.builder.operands, is_result=False),
            *self.aligned(self.text.results, self.builder.results, is_result=True),
        ]
        self.solve(values)
        kinds = dict(self.text.kinds)
        in_results = {n for place, dim in values if place.is_result for n in dim.names}
        places: dict[str, list[Place]] = {}
        for place, dim in values:
            for name in dim.names:
                places.setdefault(name, []).append(place)
        for name in self.major_to_minor(values):
            kind = kinds.get(name)
            if kind == "blocked":
                self.builder.factor(self.sizes[name], *places[name], kind=Kind.BLOCKED)
            elif name in in_results:
                self.builder.factor(self.sizes[name], *places[name])
            else:
                self.builder.factor(
                    self.sizes[name], *places[name], kind=Kind.REDUCTION, reducer=kind or "add"
                )
        return self.builder.build()

    def aligned(
        self, values: _Values, shapes: list[tuple[int, ...]], *, is_result: bool
    ) -> list[tuple[Place, _Dim]]:
        """Each dimension with what the string says of it; an ellipsis names leading dimensions
        `...0`, `...1`, the same in all values."""
        what = "results" if is_result else "operands"
        if len(values) != len(shapes):
            message = f"the rule has {len(values)} {what}, {self.op.name} has: {len(shapes)}"
            span = Span.at(self.text.origin, self.text.text, 0, len(self.text.text))
            raise RuleError(message, span=span)
        found: list[tuple[Place, _Dim]] = []
        for index, (dims, shape) in enumerate(zip(values, shapes, strict=True)):
            expanded = self.expand(dims, len(shape), f"{what[:-1]} {index}")
            found += [(Place(is_result, index, d), dim) for d, dim in enumerate(expanded)]
        return found

    def expand(self, dims: tuple[_Dim, ...], rank: int, what: str) -> list[_Dim]:
        if dims and dims[0].is_ellipsis and rank >= len(dims) - 1:
            token = dims[0].token
            leading = rank - len(dims) + 1
            return [*(_Dim((f"...{d}",), token) for d in range(leading)), *dims[1:]]
        if len(dims) != rank:
            message = f"{what} has {len(dims)} dimensions in the rule, in the op: {rank}"
            if dims:
                self.text.fail(message, dims[0].token)
            raise RuleError(message, span=Span.at(self.text.origin, self.text.text, 0))
        return list(dims)

    def solve(self, values: list[tuple[Place, _Dim]]) -> None:
        """The size of every factor: products give the one size that they lack."""
        pending = [(self.builder.size(place), dim) for place, dim in values if dim.names]
        while pending:
            rest = [(size, dim) for size, dim in pending if not self.settle(size, dim)]
            if len(rest) == len(pending):
                _, dim = rest[0]
                self.text.fail(f"the sizes of these factors are not known: {dim.names}", dim.token)
            pending = rest

    def settle(self, size: int, dim: _Dim) -> bool:
        unknown = [name for name in dim.names if name not in self.sizes]
        if len(unknown) > 1:
            return False
        known = 1
        for name in dim.names:
            known *= self.sizes.get(name, 1)
        if (unknown and size % known) or (not unknown and size != known):
            shown = " ".join(dim.names)
            self.text.fail(
                f"the factors ({shown}) are of size {known}, the dimension: {size}", dim.token
            )
        if unknown:
            self.sizes[unknown[0]] = size // known
        return True

    def major_to_minor(self, values: list[tuple[Place, _Dim]]) -> list[str]:
        """An order of all factors that agrees with the order within every product."""
        before: dict[str, set[str]] = {}
        for _, dim in values:
            for k, name in enumerate(dim.names):
                before.setdefault(name, set()).update(dim.names[:k])
        order: list[str] = []
        while before:
            ready = [name for name, majors in before.items() if majors <= set(order)]
            if not ready:
                dim = next(dim for _, dim in values if set(dim.names) & before.keys())
                self.text.fail(f"factors in two orders: {sorted(before)}", dim.token)
            order += ready[:1]
            del before[ready[0]]
        return order
