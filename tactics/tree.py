"""How does Lark's tree become ours? One small function a grammar rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from lark import Token, Tree

from ..partir_dialect.errors import Span, TacticError
from . import syntax as s
from .units import UNITS, parse_number
from .words import KEYWORDS

Parsed = Any
"""A tree or a token of Lark's, which has no types worth the name."""

MAX_NESTING = 40
MAX_OPERANDS = 200
"""No script of a person comes near these limits; they keep hostile ones off the stack's end."""

_CONSTANTS = {"true": True, "false": False, "none": None}


def build(tree: Parsed, source: str, file: str, comments: Sequence[Token]) -> s.Script:
    """The script of Lark's tree; raises `TacticError` for a unit that is none."""
    builder = _Builder(source, file, comments)
    statements = tuple(builder.statement(child) for child in _trees(tree))
    return s.Script(statements, file, source, builder.script_doc())


def _is_tree(node: Parsed) -> bool:
    return isinstance(node, Tree)


def _trees(tree: Parsed) -> list[Parsed]:
    return [child for child in tree.children if _is_tree(child)]


def _names(tree: Parsed) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token) and child.type == "NAME"]


def _unquote(token: Token) -> str:
    return str(token)[1:-1]


class _Builder:
    def __init__(self, source: str, file: str, comments: Sequence[Token]) -> None:
        self.source = source
        self.file = file
        self.depth = 0
        self.docs = {c.line or 0: str(c)[2:].strip() for c in comments if c.startswith("##")}

    def span(self, node: Parsed) -> Span:
        meta = node if isinstance(node, Token) else node.meta
        start = getattr(meta, "start_pos", None) or 0
        end = getattr(meta, "end_pos", None) or start + 1
        first_line = self.source[start:end].split("\n", 1)[0]
        return Span.at(self.file, self.source, start, max(1, len(first_line.rstrip())))

    def text(self, tree: Parsed) -> str:
        """The statement as written, on one line, without comments."""
        text = self.source[tree.meta.start_pos : tree.meta.end_pos]
        text = re.sub(r"""("[^"\n]*"|'[^'\n]*')|\#[^\n]*""", lambda m: m[1] or "", text)
        return re.sub(r"\s+", " ", text).strip()

    def doc_above(self, line: int) -> str:
        """The block of `##` comments that ends on the line above."""
        lines: list[str] = []
        while (line := line - 1) in self.docs:
            lines.append(self.docs[line])
        return "\n".join(reversed(lines))

    def script_doc(self) -> str:
        """The block of `##` comments at the top of the file."""
        lines: list[str] = []
        line = 1
        while line in self.docs:
            lines.append(self.docs[line])
            line += 1
        return "\n".join(lines)

    def new_name(self, token: Token) -> str:
        """A name that the script gives: a plain word that is no word of the language."""
        if str(token) in KEYWORDS:
            raise TacticError(f"a word of the language is no name: {token}", span=self.span(token))
        if "." in token:
            raise TacticError(f"a new name has no '.' in it: {token}", span=self.span(token))
        return str(token)

    # --- statements -----------------------------------------------------------------------------

    def statement(self, tree: Parsed) -> s.Statement:
        with self.nested(tree):
            return _STATEMENTS[tree.data](self, tree)

    @contextmanager
    def nested(self, node: Parsed) -> Generator[None]:
        """One level deeper; raises `TacticError` where a script is nested too deeply."""
        if self.depth >= MAX_NESTING:
            raise TacticError(
                f"nested too deeply, the limit is {MAX_NESTING}", span=self.span(node)
            )
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def block(self, tree: Parsed) -> tuple[s.Statement, ...]:
        return tuple(self.statement(child) for child in _trees(tree))

    def mesh(self, tree: Parsed) -> s.MeshLine:
        sizes: list[s.MeshSize] = []
        for child in _trees(tree):
            axis, size = child.children
            number = self.number(size)
            if not isinstance(number, int) or number < 1:
                raise TacticError(
                    f"the size of a mesh axis must be a whole number of at least 1, got: {size}",
                    span=self.span(size),
                )
            if any(found.axis == axis for found in sizes):
                raise TacticError(
                    f"axis named twice in the mesh: {str(axis)!r}", span=self.span(axis)
                )
            sizes.append(s.MeshSize(str(axis), number, span=self.span(child)))
        return s.MeshLine(tuple(sizes), span=self.span(tree))

    def device(self, tree: Parsed) -> s.DeviceLine:
        token = tree.children[0]
        name = _unquote(token) if token.type == "STRING" else str(token)
        return s.DeviceLine(name, span=self.span(token))

    def import_(self, tree: Parsed) -> s.Import:
        return s.Import(_unquote(tree.children[0]), span=self.span(tree.children[0]))

    def include(self, tree: Parsed) -> s.Include:
        return s.Include(_unquote(tree.children[0]), span=self.span(tree.children[0]))

    def tactic(self, tree: Parsed) -> s.TacticDefinition:
        name, *rest = tree.children
        parameters: list[s.Parameter] = []
        for child in rest[:-1]:
            if not _is_tree(child):
                continue
            token, *default = child.children
            if any(found.name == token for found in parameters):
                raise TacticError(
                    f"parameter named twice in tactic {name}: {str(token)!r}", span=self.span(token)
                )
            value = self.expr(default[0]) if default else None
            parameters.append(s.Parameter(self.new_name(token), value, span=self.span(token)))
        return s.TacticDefinition(
            self.new_name(name),
            tuple(parameters),
            self.block(rest[-1]),
            self.doc_above(tree.meta.line),
            span=self.span(name),
        )

    def expect(self, tree: Parsed) -> s.Expect:
        condition, *message = tree.children
        return s.Expect(
            self.expr(condition),
            _unquote(message[0]) if message else None,
            span=self.span(tree),
            text=self.text(tree),
        )

    def let(self, tree: Parsed) -> s.Let:
        name, value = tree.children
        return s.Let(self.new_name(name), self.expr(value), span=self.span(name))

    def if_(self, tree: Parsed) -> s.If:
        condition, then, *otherwise = tree.children
        other: tuple[s.Statement, ...] = ()
        if otherwise:
            (last,) = otherwise
            other = self.block(last) if last.data == "block" else (self.statement(last),)
        return s.If(
            self.expr(condition),
            self.block(then),
            other,
            span=self.span(tree),
            text=self.text(tree),
        )

    def for_(self, tree: Parsed) -> s.For:
        *targets, body = _trees(tree)
        return s.For(
            tuple(self.new_name(name) for name in _names(tree)),
            tuple(self.target(target) for target in targets),
            self.block(body),
            span=self.span(tree),
            text=self.text(tree),
        )

    def action(self, tree: Parsed) -> s.Action:
        kind, target, *options = tree.children
        parsed = tuple(
            s.Option(str(o.children[0]), self.expr(o.children[1]), span=self.span(o.children[0]))
            for o in (o for o in options if _is_tree(o))
        )
        return s.Action(
            str(kind), self.target(target), parsed, span=self.span(tree), text=self.text(tree)
        )

    def call(self, tree: Parsed) -> s.Call:
        name, *arguments = tree.children
        return s.Call(
            str(name), self.arguments(arguments), span=self.span(tree), text=self.text(tree)
        )

    def arguments(self, children: Sequence[Parsed]) -> tuple[s.CallArgument, ...]:
        found: list[s.CallArgument] = []
        for child in children:
            if not _is_tree(child):
                continue
            if child.data == "named":
                token, value = child.children
                found.append(s.CallArgument(str(token), self.expr(value), span=self.span(token)))
            else:
                value = child.children[0]
                found.append(s.CallArgument(None, self.expr(value), span=self.span(child)))
        return tuple(found)

    # --- targets --------------------------------------------------------------------------------

    def target(self, tree: Parsed) -> s.Target:
        first, *rest = tree.children
        span = self.span(first)
        match tree.data:
            case "pattern":
                return s.Pattern(str(first), span=span)
            case "quoted":
                return s.Pattern(_unquote(first), True, span=span)
            case "selection":
                return s.Selection(str(first), self.arguments(rest), span=span)
            case "op":
                return s.ScopedOp(_unquote(first), span=span)
            case "uses":
                return s.Uses(self.named(first), span=span)
            case _:
                assert tree.data == "producer"
                return s.Producer(str(first), self.named(rest[0]), span=span)

    def named(self, token: Token) -> s.Pattern:
        """A pattern token, quoted or not."""
        quoted = token.type == "STRING"
        return s.Pattern(_unquote(token) if quoted else str(token), quoted, span=self.span(token))

    # --- expressions ----------------------------------------------------------------------------

    def expr(self, node: Parsed) -> s.Expr:
        with self.nested(node):
            return _EXPRESSIONS[node.data](self, node)

    def number(self, token: Token) -> int | float:
        try:
            return parse_number(str(token))
        except KeyError as error:
            unit = error.args[0]
            raise TacticError(
                f"no such unit: {unit!r}", span=self.span(token), name=unit, candidates=UNITS
            ) from None
        except ValueError:
            raise TacticError(f"not a number: {token[:40]}", span=self.span(token)) from None

    def binary(self, tree: Parsed, operator: str | None = None) -> s.Expr:
        """A chain that associates to the left; the operators are tokens unless given."""
        first, *rest = tree.children
        left = self.expr(first)
        if len(rest) > MAX_OPERANDS:
            raise TacticError(
                f"an expression of more than {MAX_OPERANDS} parts", span=self.span(tree)
            )
        if operator is not None:
            rest = [part for right in rest for part in (operator, right)]
        for symbol, right in zip(rest[::2], rest[1::2], strict=True):
            left = s.Binary(str(symbol), left, self.expr(right), span=self.span(tree))
        return left


def _unary(operator: str) -> Callable[[_Builder, Parsed], s.Expr]:
    def make(b: _Builder, tree: Parsed) -> s.Expr:
        return s.Unary(operator, b.expr(tree.children[-1]), span=b.span(tree))

    return make


def _minus(b: _Builder, tree: Parsed) -> s.Expr:
    return s.Unary(str(tree.children[0]), b.expr(tree.children[1]), span=b.span(tree))


_STATEMENTS: dict[str, Callable[[_Builder, Parsed], s.Statement]] = {
    "mesh": _Builder.mesh,
    "device": _Builder.device,
    "import_": _Builder.import_,
    "include": _Builder.include,
    "tactic": _Builder.tactic,
    "expect": _Builder.expect,
    "let": _Builder.let,
    "if_": _Builder.if_,
    "for_": _Builder.for_,
    "action": _Builder.action,
    "call": _Builder.call,
}

_EXPRESSIONS: dict[str, Callable[[_Builder, Parsed], s.Expr]] = {
    "number": lambda b, t: s.Number(b.number(t.children[0]), span=b.span(t)),
    "text": lambda b, t: s.Text(_unquote(t.children[0]), span=b.span(t)),
    "constant": lambda b, t: s.Constant(_CONSTANTS[str(t.children[0])], span=b.span(t)),
    "name": lambda b, t: s.Name(str(t.children[0]), span=b.span(t)),
    "function": lambda b, t: s.Function(
        str(t.children[0]), b.arguments(t.children[1:]), span=b.span(t)
    ),
    "list": lambda b, t: s.Sequence(tuple(b.expr(c) for c in _trees(t)), span=b.span(t)),
    "not_": _unary("not"),
    "minus": _minus,
    "sum": lambda b, t: b.binary(t),
    "product": lambda b, t: b.binary(t),
    "comparison": lambda b, t: b.binary(t),
    "expr": lambda b, t: b.binary(t, "or"),
    "conjunction": lambda b, t: b.binary(t, "and"),
}
