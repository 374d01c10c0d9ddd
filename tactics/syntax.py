"""What does a tactic script say? A tree of frozen dataclasses with the place of every node.

Places (`span`) do not count when trees are compared: two scripts are equal if they say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..partir_dialect.errors import Span


def _span() -> Span:
    return Span("<none>", 1, 1)


@dataclass(frozen=True)
class Node:
    """Anything in a script; `span` says where it is written, `text` (of statements) how."""

    span: Span = field(default_factory=_span, compare=False, repr=False, kw_only=True)
    text: str = field(default="", compare=False, repr=False, kw_only=True)

    @property
    def where(self) -> str:
        """`file:line:column`."""
        return f"{self.span.file}:{self.span.line}:{self.span.column}"


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number(Node):
    """A number with its unit worked in: bytes for sizes, seconds for times, a fraction for `%`."""

    value: int | float


@dataclass(frozen=True)
class Text(Node):
    """A quoted string; where something is to be matched, a pattern."""

    value: str


@dataclass(frozen=True)
class Constant(Node):
    """`true`, `false` or `none`."""

    value: bool | None


@dataclass(frozen=True)
class Name(Node):
    """A variable, a mesh axis, a role, a program fact or a report quantity."""

    name: str


@dataclass(frozen=True)
class Sequence(Node):
    """`[a, b, c]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Function(Node):
    """`size(axis)`: a call inside an expression."""

    name: str
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True)
class Unary(Node):
    """`-x` or `not x`."""

    operator: str
    operand: Expr


@dataclass(frozen=True)
class Binary(Node):
    """Arithmetic, a comparison, `and`, `or`."""

    operator: str
    left: Expr
    right: Expr


Expr = Number | Text | Constant | Name | Sequence | Function | Unary | Binary


# --- targets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern(Node):
    """Arguments or results by name: `params/*/w_up`. Unquoted, a single word may be a variable."""

    pattern: str
    quoted: bool = False


@dataclass(frozen=True)
class Selection(Node):
    """What a function finds: `columns(axis)`."""

    name: str
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True)
class ScopedOp(Node):
    """Results of the ops whose named scope matches: `op "*/attn/softmax"`."""

    pattern: str


@dataclass(frozen=True)
class Producer(Node):
    """The result of an op of that kind that uses a named value: `result of dot_general using w`."""

    kind: str
    using: Pattern


@dataclass(frozen=True)
class Uses(Node):
    """The ops that use a value and are not decided yet: `tile uses of x dim=1 axis=model`."""

    of: Pattern


Target = Pattern | Selection | ScopedOp | Producer | Uses


# --- statements ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallArgument(Node):
    """One argument of a call; `name` is None if it is given by position."""

    name: str | None
    value: Expr


@dataclass(frozen=True)
class MeshSize(Node):
    """`batch=4` in a mesh line."""

    axis: str
    size: int


@dataclass(frozen=True)
class MeshLine(Node):
    """The mesh that the script was written for."""

    sizes: tuple[MeshSize, ...]


@dataclass(frozen=True)
class DeviceLine(Node):
    """The device that the script was written for."""

    name: str


@dataclass(frozen=True)
class Import(Node):
    """Takes the definitions of another script, and nothing else of it."""

    path: str


@dataclass(frozen=True)
class Include(Node):
    """Runs the statements of another script here."""

    path: str


@dataclass(frozen=True)
class Parameter(Node):
    """A parameter of a tactic, with its default value if it has one."""

    name: str
    default: Expr | None


@dataclass(frozen=True)
class TacticDefinition(Node):
    """A user's (or the library's) tactic; `doc` is the `##` comment above it."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    doc: str = field(default="", compare=False)


@dataclass(frozen=True)
class Expect(Node):
    """A condition that must hold of the program as the statements above leave it."""

    condition: Expr
    message: str | None


@dataclass(frozen=True)
class Let(Node):
    """A name for a value."""

    name: str
    value: Expr


@dataclass(frozen=True)
class If(Node):
    """A choice."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class For(Node):
    """The body once for each match."""

    names: tuple[str, ...]
    targets: tuple[Target, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Option(Node):
    """`dim=1` of an action."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Action(Node):
    """`tile`, `replicate`, `stop` or `share`."""

    kind: str
    target: Target
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Call(Node):
    """A tactic of the library or of the user, with its arguments."""

    name: str
    arguments: tuple[CallArgument, ...]


Statement = (
    MeshLine
    | DeviceLine
    | Import
    | Include
    | TacticDefinition
    | Expect
    | Let
    | If
    | For
    | Action
    | Call
)


@dataclass(frozen=True)
class Script:
    """A whole script. `source` is its text, `file` what messages call it."""

    statements: tuple[Statement, ...]
    file: str = field(default="<string>", compare=False)
    source: str = field(default="", compare=False, repr=False)
    doc: str = field(default="", compare=False)

    @property
    def mesh(self) -> MeshLine | None:
        """The mesh line, if there is one (the last, if a command line joins several scripts)."""
        lines = [s for s in self.statements if isinstance(s, MeshLine)]
        return lines[-1] if lines else None

    @property
    def device(self) -> str | None:
        """The device that the script names."""
        lines = [s for s in self.statements if isinstance(s, DeviceLine)]
        return lines[-1].name if lines else None

    @property
    def definitions(self) -> tuple[TacticDefinition, ...]:
        """The tactics that the script defines."""
        return tuple(s for s in self.statements if isinstance(s, TacticDefinition))

    def __add__(self, other: Script) -> Script:
        """Both, one after the other; every node still knows its own file."""
        return Script((*self.statements, *other.statements), self.file, self.source, self.doc)


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those inside bodies too, in the order written."""
    for statement in statements:
        yield statement
        match statement:
            case TacticDefinition() | For():
                yield from walk(statement.body)
            case If():
                yield from walk(statement.then)
                yield from walk(statement.otherwise)
            case _:
                pass
