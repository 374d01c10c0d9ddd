"""What does a tactic or a function take? One table of formal parameters, and how arguments bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..partir_dialect.errors import Span, TacticError
from .syntax import CallArgument, Constant, Expr, TacticDefinition


@dataclass(frozen=True, slots=True)
class Formal:
    """A parameter: `default` is an expression of the language, or None if it must be given.

    `kind` is `axis`, `axes` (one or a list), `target`, `number`, `text`, `flag` or `any`.
    """

    name: str
    kind: str = "any"
    default: Expr | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """The name and the parameters of something that can be called."""

    what: str
    name: str
    formals: tuple[Formal, ...]
    doc: str = ""

    @property
    def text(self) -> str:
        """`zero3(axis, vectors=…)` for messages and pages."""
        parts = [f.name if f.default is None else f"{f.name}=…" for f in self.formals]
        return f"{self.name}({', '.join(parts)})"


_KINDS = {"axis": "axis", "weights": "target", "inputs": "target"}


def _kind(name: str, default: Expr | None) -> str:
    if isinstance(default, Constant) and default.value is not None:
        return "flag"
    return _KINDS.get(name, "any")


def signature_of(definition: TacticDefinition) -> Signature:
    """The signature of a tactic written in the language; kinds are known by common names."""
    formals = tuple(
        Formal(p.name, _kind(p.name, p.default), p.default) for p in definition.parameters
    )
    return Signature("tactic", definition.name, formals, definition.doc)


def bind(
    signature: Signature, arguments: Sequence[CallArgument], span: Span
) -> dict[str, Expr | None]:
    """The expression of each parameter, defaults filled in; raises `TacticError` for an unknown,
    repeated, missing or superfluous argument."""
    what = f"{signature.what} {signature.name}"
    names = [formal.name for formal in signature.formals]
    bound: dict[str, Expr | None] = {}
    for position, argument in enumerate(arguments):
        name = argument.name
        if name is None:
            if any(a.name is not None for a in arguments[:position]):
                raise TacticError(
                    "an argument without a name after one with a name", span=argument.span
                )
            if position >= len(names):
                raise TacticError(
                    f"too many arguments, {what} takes {len(names)}: {signature.text}",
                    span=argument.span,
                )
            name = names[position]
        elif name not in names:
            raise TacticError(
                f"{what} has no parameter {name!r}: {signature.text}",
                span=argument.span,
                name=name,
                candidates=names,
            )
        if name in bound:
            raise TacticError(f"argument given twice: {name!r}", span=argument.span)
        bound[name] = argument.value
    for formal in signature.formals:
        if formal.name not in bound:
            if formal.default is None:
                raise TacticError(
                    f"{what} needs the argument {formal.name!r}: {signature.text}", span=span
                )
            bound[formal.name] = formal.default
    return bound
