"""What does a script do to a session? Each top-level statement acts, then propagates once.

`apply` gives a `Step` for each such statement; `run` gives the expectations too. A fault is a
`TacticError` with its place; what an earlier decision did not allow is a warning of its step, and
an error with `strict`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..engine.roles import Roles
from ..engine.session import Outcome, Session
from ..partir_dialect.errors import ExpectationError, Span, TacticError
from . import syntax as s
from .actions import tile_uses
from .evaluate import Evaluator
from .expectations import judge
from .imports import expand
from .library import PREFIX, library
from .parser import parse
from .primitives import PRIMITIVES, Searcher, SearchRequest
from .signature import Formal, bind, signature_of
from .steps import Asked, Expectation, Inferred, Step, Warned
from .traps import traps
from .values import Axis, Match, Scope, Value, describe
from .world import Measure, World

MAX_DEPTH = 50
_OPTIONS = {"tile": ("dim", "axis"), "replicate": ("axis",), "stop": ("axis",), "share": ()}


@dataclass
class Run:
    """What a script did: its steps and the expectations it stated, in order."""

    steps: list[Step] = field(default_factory=list[Step])
    expectations: list[Expectation] = field(default_factory=list[Expectation])

    @property
    def failed(self) -> list[Expectation]:
        """The expectations that did not hold."""
        return [expectation for expectation in self.expectations if not expectation.held]


def apply(
    script: s.Script,
    session: Session,
    *,
    roles: Roles | None = None,
    searcher: Searcher | None = None,
    measure: Measure | None = None,
    strict: bool = False,
    after: Callable[[Step], None] | None = None,
) -> list[Step]:
    """The steps of the script's top-level statements; the session is left in the state they lead
    to.

    `after` is called with each step when it has propagated, `measure` when an expectation needs a
    quantity that the plan alone does not have. Raises `TacticError` for a fault and, when all is
    applied, `ExpectationError` for the first expectation that failed.
    """
    run_ = run(
        script,
        session,
        roles=roles,
        searcher=searcher,
        measure=measure,
        strict=strict,
        after=after,
    )
    if run_.failed:
        first = run_.failed[0]
        raise ExpectationError(first.message, span=first.span)
    return run_.steps


def run(
    script: s.Script,
    session: Session,
    *,
    roles: Roles | None = None,
    searcher: Searcher | None = None,
    measure: Measure | None = None,
    strict: bool = False,
    after: Callable[[Step], None] | None = None,
) -> Run:
    """As `apply`, but failing expectations are among the results instead of raised."""
    world = World(session, roles, measure)
    return _Runner(world, searcher, strict, after).run(expand(script))


@dataclass
class _Statement:
    """What the top-level statement that is being applied has asked for so far."""

    asked: list[Asked] = field(default_factory=list[Asked])
    seen: set[tuple[str, int, int | None, str]] = field(
        default_factory=set[tuple[str, int, int | None, str]]
    )
    inferred: list[Inferred] = field(default_factory=list[Inferred])
    decisions: int = 0
    conflicts: int = 0
    found: str | None = None
    why: str = ""


class _Runner:
    def __init__(
        self,
        world: World,
        searcher: Searcher | None,
        strict: bool,
        after: Callable[[Step], None] | None,
    ) -> None:
        self.world = world
        self.session = world.session
        self.searcher = searcher
        self.strict = strict
        self.after = after
        self.evaluator = Evaluator(world, self.quantities)
        self.definitions = dict(library())
        self.globals = Scope()
        self.result = Run()
        self.now = _Statement()
        self.calls: list[s.Call] = []
        self._quantities: dict[str, float] | None = None

    def quantities(self) -> dict[str, float]:
        """The report's numbers of the present state, measured once for each state."""
        if self._quantities is None:
            self._quantities = self.world.quantities()
        return self._quantities

    # --- top level ------------------------------------------------------------------------------

    def run(self, script: s.Script) -> Run:
        for definition in script.definitions:
            self.definitions[definition.name] = definition
        for statement in script.statements:
            self.top(statement)
        return self.result

    def top(self, statement: s.Statement) -> None:
        match statement:
            case s.Expect():
                self.result.expectations.append(self.expect(statement, self.globals))
            case s.Let():
                self.globals.variables[statement.name] = self.evaluator.value(
                    statement.value, self.globals
                )
            case s.Call() | s.Action() | s.For() | s.If():
                step = self.step(statement)
                self.result.steps.append(step)
                if self.after is not None:
                    self.after(step)
            case _:
                pass  # mesh and device are the caller's; definitions are known already

    def step(self, statement: s.Call | s.Action | s.For | s.If) -> Step:
        """Applies one top-level statement and propagates."""
        self.now = _Statement()
        self.session.begin(statement.text, statement.where)
        self._quantities = None
        self.do(statement, self.globals.inner({}))
        if self.now.found is None:
            self.propagate()
        self._quantities = None
        now = self.now
        warnings = tuple(self.warnings(statement))
        if warnings and self.strict:
            raise TacticError(warnings[0].message, span=warnings[0].span)
        return Step(
            statement.text,
            statement.span,
            tuple(now.asked),
            tuple(now.inferred),
            now.decisions,
            now.conflicts,
            warnings,
            now.found,
        )

    def propagate(self) -> None:
        propagation = self.session.propagate()
        root = {atom: axis for axis, atoms in self.session.atoms.items() for atom in atoms}
        asked = {(a.value, a.axis) for a in self.now.asked if a.status != "refused"}
        known = {(i.argument, i.axis) for i in self.now.inferred}
        for index, dim, atom in propagation.inferred:
            argument = self.world.graph.arguments[index]
            axis = root.get(atom, atom)
            if (argument.value, axis) not in asked and (index, axis) not in known:
                known.add((index, axis))
                self.now.inferred.append(Inferred(argument.name, index, dim, axis))
        self.now.decisions += propagation.decisions
        self.now.conflicts = len(propagation.conflicts)

    def warnings(self, statement: s.Statement) -> list[Warned]:
        """What the step's user should know: refusals, no effect, known traps."""
        found = [
            Warned(f"{asked.text}: {asked.status}: {asked.reason}", asked.span)
            for asked in self.now.asked
            if asked.status != "done"
        ]
        quiet = isinstance(statement, s.For | s.If)
        if not any(asked.status == "done" for asked in self.now.asked) and not found and not quiet:
            why = f" ({self.now.why})" if self.now.why else ""
            found.append(Warned(f"changed nothing: {statement.text}{why}", statement.span))
        return found + traps(self.world, statement, self.now.asked, self.now.inferred)

    # --- statements -----------------------------------------------------------------------------

    def do(self, statement: s.Statement, scope: Scope) -> None:
        match statement:
            case s.Action():
                self.action(statement, scope)
            case s.Call():
                self.call(statement, scope)
            case s.For():
                self.loop(statement, scope)
            case s.If():
                condition = self.evaluator.value(statement.condition, scope)
                chosen = self.evaluator.truth(condition, statement.condition.span)
                self.block(statement.then if chosen else statement.otherwise, scope)
            case s.Let():
                scope.variables[statement.name] = self.evaluator.value(statement.value, scope)
            case s.Expect():
                self.result.expectations.append(self.expect(statement, scope))
            case _:
                raise TacticError("only allowed at the top of a script", span=statement.span)

    def block(self, statements: Sequence[s.Statement], scope: Scope) -> None:
        inner = scope.inner({})
        for statement in statements:
            self.do(statement, inner)

    def loop(self, statement: s.For, scope: Scope) -> None:
        for target in statement.targets:
            if isinstance(target, s.Selection) and target.name == "columns":
                axis = self.evaluator.value(target.arguments[0].value, scope)
                self.now.why = self.world.no_columns(self.evaluator.axis(axis, target.span))
        rows = [row for target in statement.targets for row in self.evaluator.target(target, scope)]
        for row in rows:
            values = row if isinstance(row, tuple) else (row,)
            if len(values) != len(statement.names):
                raise TacticError(
                    f"each match has {len(values)} parts, but {len(statement.names)} names are "
                    f"given: {', '.join(statement.names)}",
                    span=statement.span,
                )
            inner = scope.inner(dict(zip(statement.names, values, strict=True)))
            self.block(statement.body, inner)

    def call(self, call: s.Call, scope: Scope) -> None:
        definition = self.definitions.get(call.name)
        if definition is None:
            if call.name in PRIMITIVES:
                self.primitive(call, scope)
                return
            raise unknown_tactic(call, self.definitions)
        if len(self.calls) >= MAX_DEPTH:
            raise TacticError(f"tactic {call.name} calls itself without end", span=call.span)
        signature = signature_of(definition)
        bound = bind(signature, call.arguments, call.span)
        formals = {formal.name: formal for formal in signature.formals}
        given = {argument.name for argument in call.arguments}
        values: dict[str, Value] = {}
        for position, (parameter, expr) in enumerate(
            zip(definition.parameters, (bound[p.name] for p in definition.parameters), strict=True)
        ):
            assert expr is not None
            is_given = parameter.name in given or (
                position < len(call.arguments) and call.arguments[position].name is None
            )
            values[parameter.name] = self.argument(
                formals[parameter.name], expr, scope if is_given else self.globals
            )
        self.calls.append(call)
        try:
            self.block(definition.body, self.globals.inner(values))
        except TacticError as error:
            raise self.blame(error, definition, call) from None
        finally:
            self.calls.pop()

    def argument(self, formal: Formal, expr: s.Expr, scope: Scope) -> Value:
        """The value of an argument; patterns are looked up here, where they are written."""
        value = self.evaluator.value(expr, scope)
        if formal.kind == "axis" and not isinstance(value, list):
            return self.evaluator.axis(value, expr.span)
        if formal.kind == "target" and isinstance(expr, s.Sequence):
            return [
                match
                for item in expr.items
                for match in self.evaluator.matches(self.evaluator.value(item, scope), item.span)
            ]
        if formal.kind == "target":
            return list(self.evaluator.matches(value, expr.span))
        return value

    def blame(
        self, error: TacticError, definition: s.TacticDefinition, call: s.Call
    ) -> TacticError:
        """A fault inside a library tactic is shown at the call, in the user's own script."""
        if error.span is not None and not error.span.file.startswith(PREFIX):
            return error
        if call.span.file.startswith(PREFIX):
            return error
        return TacticError(
            f"{call.name}: {error.message}",
            span=call.span,
            name=error.name,
            candidates=error.candidates,
        )

    def primitive(self, call: s.Call, scope: Scope) -> None:
        primitive = PRIMITIVES[call.name]
        exprs = bind(primitive.signature, call.arguments, call.span)
        if not primitive.supported:
            raise TacticError(
                f"tactic {call.name} is not supported by this version of partir", span=call.span
            )
        values = {
            name: self.evaluator.value(expr, scope) if expr is not None else None
            for name, expr in exprs.items()
        }
        self.auto(call, values)

    def auto(self, call: s.Call, values: dict[str, Value]) -> None:
        """Lets the searcher find a script and runs it statement by statement."""
        if self.searcher is None:
            raise TacticError(
                "auto is not supported here: no searcher was given (use `partir search`)",
                span=call.span,
            )
        if self.calls:
            raise TacticError("auto is only allowed at the top of a script", span=call.span)
        request = self.request(call, values)
        text = self.searcher.search(self.session, request)
        found = expand(parse(text, "<auto>"))
        for statement in found.statements:
            if isinstance(statement, s.Call | s.Action | s.For | s.If):
                self.session.begin(statement.text, call.where)
                self.do(statement, self.globals.inner({}))
                self.propagate()
        self.now.found = text

    def request(self, call: s.Call, values: dict[str, Value]) -> SearchRequest:
        axes = values["axis"] if isinstance(values["axis"], list) else [values["axis"]]

        def number(name: str) -> float | None:
            value = values[name]
            return None if value is None else self.evaluator.number(value, call.span)

        budget = number("budget")
        goal = values["goal"]
        return SearchRequest(
            tuple(self.evaluator.axis(axis, call.span).name for axis in axes),
            None if goal is None else str(goal),
            None if budget is None else int(budget),
            number("time_limit"),
            int(number("seed") or 0),
            number("memory"),
        )

    # --- actions --------------------------------------------------------------------------------

    def action(self, action: s.Action, scope: Scope) -> None:
        options = self.options(action, scope)
        span = self.place(action.span)
        matches = [
            match
            for value in self.evaluator.target(action.target, scope)
            for match in self.evaluator.matches(value, action.target.span)
        ]
        if action.kind == "share":
            for match in matches:
                self.share(match, span)
            return
        axes = options["axis"] if isinstance(options["axis"], list) else [options["axis"]]
        for axis in (self.evaluator.axis(a, action.span) for a in axes):
            for match in matches:
                self.act(action, match, axis, options.get("dim"), span)

    def share(self, match: Match, span: Span) -> None:
        """The gathers of a parameter serve all its uses, in whatever type they use it."""
        values = sorted(self.world.made_of([match]))
        statuses = [self.session.gather_once(value) for value in values]
        done = next((s for s in statuses if s.done), statuses[0])
        self.now.asked.append(
            Asked("share", match.name, match.value, None, "", done.status, done.reason, span)
        )

    def options(self, action: s.Action, scope: Scope) -> dict[str, Value]:
        """The options of an action; raises `TacticError` for unknown, repeated and missing ones."""
        check_options(action)
        return {o.name: self.evaluator.value(o.value, scope) for o in action.options}

    def act(self, action: s.Action, match: Match, axis: Axis, dim: Value, span: Span) -> None:
        at = self.dimension(action, match, dim) if action.kind == "tile" else None
        key = (f"{action.kind} {match.name}", match.value, at, axis.name)
        if key in self.now.seen:
            return
        self.now.seen.add(key)
        try:
            outcome = self.outcome(action.kind, match, axis, at)
        except TacticError as error:
            error.span = error.span or span
            raise
        if at is not None and outcome.status == "refused":
            self.uneven(match, axis, at, outcome, span)
        self.now.asked.append(
            Asked(
                action.kind,
                match.name,
                match.value,
                at,
                axis.name,
                outcome.status,
                outcome.reason,
                span,
            )
        )

    def outcome(self, kind: str, match: Match, axis: Axis, dim: int | None) -> Outcome:
        if match.uses and kind != "tile":
            raise TacticError(f"{kind} acts on values, not on {match.name}")
        if kind == "replicate":
            return self.session.replicate(match.value, axis.name)
        if kind == "stop":
            return self.session.stop(match.value, axis.name)
        if dim is None:
            local = "x".join(map(str, self.session.local_shape(match.value)))
            return Outcome("refused", f"no dimension of its tile {local} divides by {axis.size}")
        if match.uses:
            return tile_uses(self.session, match.value, dim, axis.name)
        return self.session.tile(match.value, dim, axis.name)

    def uneven(self, match: Match, axis: Axis, dim: int, outcome: Outcome, span: Span) -> None:
        """A size that can be neither divided nor padded is a fault of the script, not a warning."""
        shape = self.world.graph.shapes[match.value]
        tiled = self.session.tiled_dim(match.value, axis.name) is not None
        if shape[dim] % axis.size and not tiled:
            raise TacticError(
                f"dimension {dim} of {match.name} ({'x'.join(map(str, shape))}) cannot be divided "
                f"by {axis.name}={axis.size}: {outcome.reason}",
                span=span,
            )

    def dimension(self, action: s.Action, match: Match, dim: Value) -> int | None:
        """The dimension to tile; raises `TacticError` if there is none such."""
        if dim is None:
            return None
        span = next(o.value.span for o in action.options if o.name == "dim")
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TacticError(f"a dimension is a whole number, got: {describe(dim)}", span=span)
        shape = self.world.graph.shapes[match.value]
        text = "x".join(map(str, shape)) or "scalar"
        if not -len(shape) <= dim < len(shape):
            raise TacticError(f"{match.name} ({text}) has no dimension {dim}", span=span)
        return dim % len(shape)

    def place(self, span: Span) -> Span:
        """Where to show something: in the user's own script, not in the library."""
        for call in reversed(self.calls):
            if not span.file.startswith(PREFIX):
                break
            span = call.span
        return span

    def expect(self, statement: s.Expect, scope: Scope) -> Expectation:
        return judge(statement, self.evaluator, scope)


def check_options(action: s.Action) -> None:
    """Whether an action has the options it needs and no others; raises `TacticError`."""
    allowed = _OPTIONS[action.kind]
    seen: set[str] = set()
    for option in action.options:
        if option.name not in allowed:
            raise TacticError(
                f"{action.kind} has no option {option.name!r}",
                span=option.span,
                name=option.name,
                candidates=allowed,
            )
        if option.name in seen:
            raise TacticError(f"option given twice: {option.name!r}", span=option.span)
        seen.add(option.name)
    for name in allowed:
        if name not in seen:
            raise TacticError(f"{action.kind} needs {name}=…", span=action.span)


def unknown_tactic(call: s.Call, definitions: dict[str, s.TacticDefinition]) -> TacticError:
    """The fault of a call of nothing."""
    return TacticError(
        f"no such tactic: {call.name!r}",
        span=call.span,
        name=call.name,
        candidates=[*definitions, *PRIMITIVES],
    )
