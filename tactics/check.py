"""Is a script right, as far as can be known before it is applied?

Knows the language and the library; with a mesh also the axes, with a world (a session on a program)
also the names. The first fault is raised as a `TacticError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..partir_dialect.errors import Span, TacticError
from ..partir_dialect.mesh import Mesh
from . import syntax as s
from .apply import check_options, unknown_tactic
from .evaluate import Evaluator
from .functions import FUNCTIONS
from .imports import Reader, expand, read_file
from .library import library
from .names import compile_pattern
from .primitives import PRIMITIVES
from .signature import Formal, Signature, bind, signature_of
from .values import Scope
from .world import FACTS, QUANTITIES, ROLES, World

_TOP_ONLY = (s.MeshLine, s.DeviceLine, s.Import, s.Include, s.TacticDefinition)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "and", "or")


@dataclass(frozen=True)
class Checked:
    """A script without faults: expanded, with its mesh and device, and what it documents.

    `documented` is each tactic it defines with the `##` comment above it.
    """

    script: s.Script
    mesh: Mesh | None
    device: str | None
    documented: tuple[tuple[str, str], ...]


def mesh_of(script: s.Script) -> Mesh | None:
    """The mesh of the script's mesh line, if it has one."""
    line = script.mesh
    return None if line is None else Mesh([(size.axis, size.size) for size in line.sizes])


def check(
    script: s.Script,
    *,
    mesh: Mesh | None = None,
    world: World | None = None,
    devices: Collection[str] = (),
    reader: Reader = read_file,
) -> Checked:
    """Raises `TacticError` for the first fault; else the checked script.

    `mesh` wins over the script's own; `devices` are the known device names (none: any name goes).
    """
    whole = expand(script, reader)
    own = mesh_of(whole)
    if world is not None:
        mesh = world.session.mesh
    checker = _Checker(mesh or own, world, devices)
    checker.script(whole)
    documented = tuple(
        (signature_of(definition).text, definition.doc) for definition in script.definitions
    )
    return Checked(whole, own, whole.device, documented)


class _Checker:
    def __init__(self, mesh: Mesh | None, world: World | None, devices: Collection[str]) -> None:
        self.mesh = mesh
        self.world = world
        self.devices = devices
        self.definitions = dict(library())
        self.calls: dict[str, list[s.Call]] = {}
        self.inside: str | None = None

    # --- statements -----------------------------------------------------------------------------

    def script(self, script: s.Script) -> None:
        own: dict[str, s.TacticDefinition] = {}
        for definition in script.definitions:
            if definition.name in own:
                raise TacticError(
                    f"tactic defined twice: {definition.name!r} "
                    f"(first at {own[definition.name].where})",
                    span=definition.span,
                )
            if definition.name in PRIMITIVES:
                raise TacticError(
                    f"a tactic of partir cannot be defined anew: {definition.name!r}",
                    span=definition.span,
                )
            own[definition.name] = definition
        self.definitions.update(own)
        variables = {st.name for st in script.statements if isinstance(st, s.Let)}
        for statement in script.statements:
            self.statement(statement, variables, top=True)
        self.endless(own)

    def endless(self, own: dict[str, s.TacticDefinition]) -> None:
        """A tactic that calls itself, directly or by others, never ends (there is no recursion)."""

        def visit(name: str, path: tuple[str, ...]) -> None:
            for call in self.calls.get(name, ()):
                if call.name in (*path, name):
                    raise TacticError(
                        f"tactic {call.name} calls itself without end", span=call.span
                    )
                if call.name in own:
                    visit(call.name, (*path, name))

        for name in own:
            visit(name, ())

    def block(self, statements: Sequence[s.Statement], variables: set[str]) -> None:
        inner = set(variables)
        for statement in statements:
            self.statement(statement, inner, top=False)

    def statement(self, statement: s.Statement, variables: set[str], *, top: bool) -> None:
        if not top and isinstance(statement, _TOP_ONLY):
            raise TacticError("only allowed at the top of a script", span=statement.span)
        match statement:
            case s.DeviceLine():
                if self.devices and statement.name not in self.devices:
                    raise TacticError(
                        f"no such device: {statement.name!r}",
                        span=statement.span,
                        name=statement.name,
                        candidates=self.devices,
                    )
            case s.TacticDefinition():
                self.definition(statement, variables)
            case s.Let():
                self.expr(statement.value, variables)
                variables.add(statement.name)
            case s.Expect():
                self.condition(statement.condition, variables, "expect")
            case s.If():
                self.condition(statement.condition, variables, "if")
                self.block(statement.then, variables)
                self.block(statement.otherwise, variables)
            case s.For():
                self.loop(statement, variables)
            case s.Action():
                self.action(statement, variables)
            case s.Call():
                self.call(statement, variables)
            case _:
                pass

    def definition(self, definition: s.TacticDefinition, variables: set[str]) -> None:
        for parameter in definition.parameters:
            if parameter.default is not None:
                self.expr(parameter.default, variables)
        self.inside = definition.name
        self.block(definition.body, variables | {p.name for p in definition.parameters})
        self.inside = None

    def loop(self, statement: s.For, variables: set[str]) -> None:
        for target in statement.targets:
            self.target(target, variables)
        seen: set[str] = set()
        for name in statement.names:
            if name in seen:
                raise TacticError(f"name given twice: {name!r}", span=statement.span)
            seen.add(name)
        self.block(statement.body, variables | seen)

    def action(self, action: s.Action, variables: set[str]) -> None:
        check_options(action)
        self.target(action.target, variables)
        for option in action.options:
            if option.name == "axis":
                self.axes(option.value, variables)
            self.expr(option.value, variables)
            if option.name == "dim" and not _may_be_whole(option.value):
                raise TacticError("a dimension is a whole number", span=option.value.span)

    def call(self, call: s.Call, variables: set[str]) -> None:
        if self.inside is not None:
            self.calls.setdefault(self.inside, []).append(call)
        if call.name in self.definitions:
            signature = signature_of(self.definitions[call.name])
        elif call.name in PRIMITIVES:
            signature = PRIMITIVES[call.name].signature
        else:
            raise unknown_tactic(call, self.definitions)
        self.arguments(signature, call.arguments, call.span, variables)

    def arguments(
        self,
        signature: Signature,
        arguments: Sequence[s.CallArgument],
        span: Span,
        variables: set[str],
    ) -> None:
        bound = bind(signature, arguments, span)
        given = {id(argument.value) for argument in arguments}
        for formal in signature.formals:
            expr = bound[formal.name]
            if expr is not None and id(expr) in given:
                self.argument(formal, expr, variables)

    def argument(self, formal: Formal, expr: s.Expr, variables: set[str]) -> None:
        known = isinstance(expr, s.Name) and expr.name in variables
        if formal.kind in ("axis", "axes"):
            self.axes(expr, variables)
        elif formal.kind == "flag" and isinstance(expr, s.Name) and not known:
            raise TacticError(
                f"{formal.name} is true or false, got: {expr.name}",
                span=expr.span,
                name=expr.name,
                candidates=("true", "false"),
            )
        if formal.kind == "target":
            self.unquoted(expr, variables)
        self.expr(expr, variables)
        if formal.kind in ("target", "one"):
            self.patterns(expr)
        elif formal.kind == "number" and isinstance(expr, s.Text | s.Sequence):
            raise TacticError(f"{formal.name} is a number", span=expr.span)
        elif formal.kind == "flag" and isinstance(expr, s.Number | s.Text | s.Sequence):
            raise TacticError(f"{formal.name} is true or false", span=expr.span)
        elif formal.kind == "text" and isinstance(expr, s.Number | s.Sequence):
            raise TacticError(f"{formal.name} is a text in quotes", span=expr.span)

    def unquoted(self, expr: s.Expr, variables: set[str]) -> None:
        """A bare word where values are named is a variable or a role; a pattern has quotes."""
        for item in expr.items if isinstance(expr, s.Sequence) else (expr,):
            if isinstance(item, s.Name) and item.name not in (*variables, *ROLES):
                raise TacticError(
                    f'a name pattern is written in quotes: "{item.name}"',
                    span=item.span,
                    name=item.name,
                    candidates=[*variables, *ROLES],
                )

    # --- expressions ----------------------------------------------------------------------------

    def condition(self, expr: s.Expr, variables: set[str], what: str) -> None:
        self.expr(expr, variables)
        arithmetic = isinstance(expr, s.Binary) and expr.operator not in _COMPARISONS
        if arithmetic or isinstance(expr, s.Number | s.Text | s.Sequence):
            raise TacticError(f"{what} wants something that is true or false", span=expr.span)
        if isinstance(expr, s.Name) and expr.name in QUANTITIES:
            raise TacticError(
                f"{what} wants something that is true or false, such as {expr.name} == 0",
                span=expr.span,
            )

    def expr(self, expr: s.Expr, variables: set[str]) -> None:
        match expr:
            case s.Name():
                self.name(expr, variables)
            case s.Sequence():
                for item in expr.items:
                    self.expr(item, variables)
            case s.Unary():
                self.expr(expr.operand, variables)
            case s.Binary():
                self.expr(expr.left, variables)
                self.expr(expr.right, variables)
            case s.Function():
                self.function(expr.name, expr.arguments, expr.span, variables)
            case _:
                pass

    def function(
        self,
        name: str,
        arguments: Sequence[s.CallArgument],
        span: Span,
        variables: set[str],
    ) -> None:
        if name not in FUNCTIONS:
            raise TacticError(
                f"no such function: {name!r}", span=span, name=name, candidates=FUNCTIONS
            )
        self.arguments(FUNCTIONS[name].signature, arguments, span, variables)

    def name(self, node: s.Name, variables: set[str]) -> None:
        known = [*variables, *ROLES, *FACTS, *QUANTITIES]
        if self.mesh is not None:
            known += self.mesh.names
        elif "." not in node.name:
            return  # it may be an axis of the mesh that the command line gives
        if node.name not in known:
            raise TacticError(
                f"no such name: {node.name!r}", span=node.span, name=node.name, candidates=known
            )

    def axes(self, expr: s.Expr, variables: set[str]) -> None:
        """Names and texts that must be mesh axes."""
        if isinstance(expr, s.Sequence):
            for item in expr.items:
                self.axes(item, variables)
            return
        if isinstance(expr, s.Number | s.Constant):
            raise TacticError("an axis is a name of the mesh", span=expr.span)
        if not isinstance(expr, s.Name | s.Text) or self.mesh is None:
            return
        text = expr.name if isinstance(expr, s.Name) else expr.value
        if text not in self.mesh and text not in variables:
            raise TacticError(
                f"no such mesh axis: {text!r}",
                span=expr.span,
                name=text,
                candidates=self.mesh.names,
            )

    # --- targets --------------------------------------------------------------------------------

    def target(self, target: s.Target, variables: set[str]) -> None:
        match target:
            case s.Selection():
                self.function(target.name, target.arguments, target.span, variables)
            case s.Pattern():
                self.pattern(target, variables)
            case s.ScopedOp():
                self.compiled(target.pattern, target.span)
                if self.world is not None:
                    self.world.find_ops(target.pattern, target.span)
            case s.Uses():
                self.pattern(target.of, variables)
            case s.Producer():
                self.pattern(target.using, variables)
                if self.world is not None and target.using.pattern not in variables:
                    Evaluator(self.world).target(target, Scope())

    def pattern(self, pattern: s.Pattern, variables: set[str]) -> None:
        if not pattern.quoted and (pattern.pattern in variables or pattern.pattern in ROLES):
            return
        self.compiled(pattern.pattern, pattern.span)
        if self.world is not None:
            self.world.find(pattern.pattern, pattern.span)

    def patterns(self, expr: s.Expr) -> None:
        """Quoted patterns inside an argument that names values."""
        for text in _texts(expr):
            self.compiled(text.value, text.span)
            if self.world is not None:
                self.world.find(text.value, text.span)

    def compiled(self, pattern: str, span: Span) -> None:
        try:
            compile_pattern(pattern)
        except ValueError as error:
            raise TacticError(f"not a name pattern: {pattern!r} ({error})", span=span) from None


def _may_be_whole(expr: s.Expr) -> bool:
    """Whether an expression can be a whole number, as far as its form says."""
    if isinstance(expr, s.Number):
        return isinstance(expr.value, int)
    return not isinstance(expr, s.Text | s.Sequence)


def _texts(expr: s.Expr) -> Iterable[s.Text]:
    if isinstance(expr, s.Text):
        yield expr
    elif isinstance(expr, s.Sequence):
        for item in expr.items:
            yield from _texts(item)
