"""What is the value of an expression, and which values does a target mean?"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..partir_dialect.errors import Span, TacticError
from . import syntax as s
from .functions import FUNCTIONS, Function
from .signature import bind
from .values import Axis, Match, Role, Scope, Value, describe
from .world import FACTS, QUANTITIES, ROLES, World

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": operator.mod,
}
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass
class Evaluator:
    """Evaluates in a world; `quantities` are the report's numbers where they may be asked for."""

    world: World
    quantities: Callable[[], dict[str, float]] | None = None

    # --- expressions ----------------------------------------------------------------------------

    def value(self, expr: s.Expr, scope: Scope) -> Value:
        """The value of an expression; raises `TacticError` with the place of what is wrong."""
        match expr:
            case s.Number() | s.Text() | s.Constant():
                return expr.value
            case s.Name():
                return self.name(expr, scope)
            case s.Sequence():
                return [self.value(item, scope) for item in expr.items]
            case s.Function():
                return self.function(expr, scope)
            case s.Unary():
                return self.unary(expr, scope)
            case s.Binary():
                return self.binary(expr, scope)

    def name(self, node: s.Name, scope: Scope) -> Value:
        value, found = scope.get(node.name)
        if found:
            return value
        for lookup in (self.world.axis, self.world.role, self.world.fact):
            known = lookup(node.name)
            if known is not None:
                return known
        if node.name in QUANTITIES:
            return self.quantity(node)
        raise self.unknown(node, scope)

    def unknown(self, node: s.Name, scope: Scope) -> TacticError:
        names = [*scope.names(), *self.world.session.mesh.names, *ROLES, *FACTS]
        if self.quantities is not None:
            names += list(QUANTITIES)
        return TacticError(
            f"no such name: {node.name!r}", span=node.span, name=node.name, candidates=names
        )

    def quantity(self, node: s.Name) -> float:
        if self.quantities is None:
            raise TacticError(
                f"{node.name!r} is known only when a script is applied",
                span=node.span,
            )
        values = self.quantities()
        if node.name not in values:
            raise TacticError(f"{node.name!r} is not measured in this run", span=node.span)
        return values[node.name]

    def unary(self, node: s.Unary, scope: Scope) -> Value:
        value = self.value(node.operand, scope)
        if node.operator == "not":
            return not self.truth(value, node.operand.span)
        number = self.number(value, node.operand.span)
        return -number if node.operator == "-" else number

    def binary(self, node: s.Binary, scope: Scope) -> Value:
        op = node.operator
        if op in ("and", "or"):
            left = self.truth(self.value(node.left, scope), node.left.span)
            if left == (op == "or"):
                return left
            return self.truth(self.value(node.right, scope), node.right.span)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if op in ("==", "!="):
            return self.equal(left, right) == (op == "==")
        a, b = self.number(left, node.left.span), self.number(right, node.right.span)
        if op in _ORDER:
            return _ORDER[op](a, b)
        if b == 0 and op in ("/", "//", "%"):
            raise TacticError(f"division by zero in {op!r}", span=node.right.span)
        result = _ARITHMETIC[op](a, b)
        if not math.isfinite(result):
            raise TacticError("a number that is too large", span=node.span)
        return int(result) if isinstance(result, float) and result.is_integer() else result

    def equal(self, left: Value, right: Value) -> bool:
        """Whether two values are the same; numbers, axes and roles compare as numbers when
        mixed."""
        if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
            plain = [str(v) if isinstance(v, Axis | Match) else v for v in (left, right)]
            return plain[0] == plain[1]
        if type(left) is type(right):
            return left == right
        return _numeric(left) is not None and _numeric(left) == _numeric(right)

    def function(self, node: s.Function, scope: Scope) -> Value:
        function = self.lookup(node.name, node.span)
        arguments = self.bound(function, node.arguments, node.span, scope)
        try:
            return function.apply(self.world, arguments)
        except TacticError as error:
            error.span = error.span or node.span
            raise

    def lookup(self, name: str, span: Span) -> Function:
        if name not in FUNCTIONS:
            raise TacticError(
                f"no such function: {name!r}", span=span, name=name, candidates=FUNCTIONS
            )
        return FUNCTIONS[name]

    def bound(
        self, function: Function, arguments: Sequence[s.CallArgument], span: Span, scope: Scope
    ) -> dict[str, Value]:
        """The arguments of a function, each of the kind that its parameter wants."""
        exprs = bind(function.signature, arguments, span)
        found: dict[str, Value] = {}
        for formal in function.signature.formals:
            expr = exprs[formal.name]
            assert expr is not None
            found[formal.name] = self.coerce(formal.kind, self.value(expr, scope), expr.span)
        return found

    def coerce(self, kind: str, value: Value, span: Span) -> Value:
        match kind:
            case "axis":
                return self.axis(value, span)
            case "target":
                return None if value is None else list(self.matches(value, span))
            case "one":
                matches = self.matches(value, span)
                if len(matches) != 1:
                    raise TacticError(f"one value is wanted, got {len(matches)}", span=span)
                return matches[0]
            case "number":
                return self.number(value, span)
            case "flag":
                return self.truth(value, span)
            case _:
                return value

    # --- kinds ----------------------------------------------------------------------------------

    def axis(self, value: Value, span: Span) -> Axis:
        """A mesh axis from a name, a quoted name or a variable."""
        if isinstance(value, Axis):
            return value
        names = self.world.session.mesh.names
        if isinstance(value, str):
            axis = self.world.axis(value)
            if axis is not None:
                return axis
            raise TacticError(
                f"no such mesh axis: {value!r}", span=span, name=value, candidates=names
            )
        raise TacticError(
            f"a mesh axis is wanted ({', '.join(names)}), got: {describe(value)}", span=span
        )

    def number(self, value: Value, span: Span) -> int | float:
        number = _numeric(value)
        if number is None:
            raise TacticError(f"a number is wanted, got: {describe(value)}", span=span)
        return number

    def whole(self, value: Value, span: Span) -> int:
        number = self.number(value, span)
        if int(number) != number:
            raise TacticError(f"a whole number is wanted, got: {number:g}", span=span)
        return int(number)

    def truth(self, value: Value, span: Span) -> bool:
        if isinstance(value, bool):
            return value
        raise TacticError(f"true or false is wanted, got: {describe(value)}", span=span)

    def matches(self, value: Value, span: Span) -> list[Match]:
        """The values that a pattern, a role, a variable or a list of them means."""
        match value:
            case Match():
                return [value]
            case Role():
                return list(value.matches)
            case str():
                return self.world.find(value, span)
            case list() | tuple():
                found: dict[int, Match] = {}
                for item in value:
                    found.update((m.value, m) for m in self.matches(item, span))
                return list(found.values())
            case _:
                raise TacticError(f"a name pattern is wanted, got: {describe(value)}", span=span)

    # --- targets --------------------------------------------------------------------------------

    def target(self, target: s.Target, scope: Scope) -> list[Value]:
        """What a target means: matches, or the rows that a function finds."""
        match target:
            case s.Pattern():
                value = self.pattern(target, scope)
                if isinstance(value, list) and any(isinstance(v, tuple) for v in value):
                    return value
                return list(self.matches(value, target.span))
            case s.Selection():
                found = self.function(
                    s.Function(target.name, target.arguments, span=target.span), scope
                )
                return found if isinstance(found, list) else [found]
            case s.ScopedOp():
                return list(self.world.find_ops(target.pattern, target.span))
            case s.Uses():
                of = self.matches(self.pattern(target.of, scope), target.of.span)
                return [Match(m.value, f"uses of {m.name}", True) for m in of]
            case s.Producer():
                using = self.matches(self.pattern(target.using, scope), target.using.span)
                return list(self.world.producers(target.kind, using, target.span))

    def pattern(self, pattern: s.Pattern, scope: Scope) -> Value:
        """A bare word may be a variable or a role, else it is a pattern."""
        if not pattern.quoted:
            value, found = scope.get(pattern.pattern)
            if found:
                return value
            role = self.world.role(pattern.pattern)
            if role is not None:
                return role
        return pattern.pattern


def _numeric(value: Value) -> int | float | None:
    match value:
        case bool():
            return None
        case int() | float():
            return value
        case Axis():
            return value.size
        case Role():
            return len(value.matches)
        case list():
            return len(value)
        case _:
            return None
