"""What does a script run on? The session, with names, roles, facts and quantities looked up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..engine.graph import Graph
from ..engine.roles import INPUT, OPTIMIZER, PARAM, Roles, find_roles
from ..engine.session import Session
from ..partir_dialect.errors import Span, TacticError
from .names import compile_pattern, matching, nothing_matches
from .pairs import columns, obstacles
from .structure import Structure
from .values import Axis, Match, Role

KINDS = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute")
ROLES = {"params": PARAM, "optimizer": OPTIMIZER, "inputs": INPUT}
FACTS: dict[str, str] = {
    "layers": "how many repeated layers the parameters have (by the numbers in their names)",
    "params": "how many parameter tensors there are",
    "parameters": "how many parameter elements there are",
    "optimizer": "how many tensors of optimizer state there are",
    "inputs": "how many input tensors there are",
    "devices": "how many devices the mesh has",
}
QUANTITIES: dict[str, str] = {
    **{
        f"{kind}.{what}": f"{text} of the {kind}s of one run"
        for kind in (*KINDS, "collectives")
        for what, text in (
            ("count", "number"),
            ("bytes", "result bytes per device"),
            ("ring_bytes", "bytes a device sends by ring algorithms"),
        )
    },
    "argument_bytes": "bytes of all arguments on one device",
    "peak_memory": "the most bytes that are live on one device",
    "peak_memory_bytes": "the same as peak_memory",
    "flops": "floating-point operations of one device",
    "estimated_time": "estimated seconds of one run",
    "estimated_time_s": "the same as estimated_time",
    "conflicts": "ops that two decisions pull in different directions",
    "fallbacks": "operands gathered because their op cannot be tiled there",
}
_SAME = {"peak_memory": "peak_memory_bytes", "estimated_time": "estimated_time_s"}

Measure = Callable[[Session], Mapping[str, float]]
"""Further quantities of the present state (`peak_memory_bytes`, `flops`, `estimated_time_s`)."""

_SCOPE = re.compile(r"\((?P<scope>.*)\)\Z")


@dataclass
class World:
    """A session with everything that names in a script can mean in it."""

    session: Session
    roles_given: Roles | None = None
    measure: Measure | None = None

    @property
    def graph(self) -> Graph:
        return self.session.graph

    @cached_property
    def roles(self) -> Roles:
        return self.roles_given or find_roles(self.graph)

    @cached_property
    def structure(self) -> Structure:
        return Structure(self.graph, self.roles)

    @cached_property
    def named(self) -> list[Match]:
        """All arguments, then all results."""
        found = [Match(argument.value, argument.name) for argument in self.graph.arguments]
        return found + [Match(outcome.value, outcome.name) for outcome in self.graph.outcomes]

    @cached_property
    def names(self) -> list[str]:
        return [match.name for match in self.named]

    @cached_property
    def argument_of(self) -> dict[int, int]:
        """The argument index of a value that is an argument."""
        return {argument.value: i for i, argument in enumerate(self.graph.arguments)}

    # --- lookups --------------------------------------------------------------------------------

    def axis(self, name: str) -> Axis | None:
        """The mesh axis of that name, if there is one."""
        return Axis(name, self.session.mesh.size(name)) if name in self.session.mesh else None

    def role(self, name: str) -> Role | None:
        """`params`, `optimizer` or `inputs`."""
        if name not in ROLES:
            return None
        return Role(name, tuple(self.named[i] for i in self.roles.of(ROLES[name])))

    def find(self, pattern: str, span: Span) -> list[Match]:
        """Arguments that the pattern names, else results; raises `TacticError` if there are none.

        A result is meant only where no argument is: `params/w` is the argument, `result/params/w`
        and `loss` are results.
        """
        count = len(self.graph.arguments)
        indices = matching(pattern, self.names, span)
        if not indices:
            raise nothing_matches(pattern, self.names, "argument or result", span)
        arguments = [i for i in indices if i < count]
        return [self.named[i] for i in (arguments or indices)]

    def find_ops(self, pattern: str, span: Span) -> list[Match]:
        """Results of the ops whose named scope matches: the scope itself or what is inside it."""
        found: list[Match] = []
        for op, scope in enumerate(self.scopes):
            if scope and _scope_matches(pattern, scope):
                found.extend(
                    Match(value, f"{scope}:{self.graph.kinds[op]}")
                    for value in self.graph.results[op]
                )
        if not found:
            raise TacticError(
                f"no named scope of an op is named {pattern!r}",
                span=span,
                name=pattern,
                candidates=sorted({p for scope in self.scopes for p in _prefixes(scope)}),
            )
        return found

    @cached_property
    def scopes(self) -> list[str]:
        """The named scope of each op, without JAX's wrappers: `layer_0/attn/softmax`."""
        return [scope_of(location) for location in self.graph.locations]

    def producers(self, kind: str, using: Sequence[Match], span: Span) -> list[Match]:
        """Results of ops of that kind of which an operand is one of the values, seen through ops
        that only change a parameter's type or shape."""
        wanted = kind if "." in kind else f"stablehlo.{kind}"
        if wanted not in self.graph.kinds:
            raise TacticError(
                f"the program has no op of the kind {kind!r}",
                span=span,
                name=kind,
                candidates=sorted({k.partition(".")[2] for k in self.graph.kinds}),
            )
        names: dict[int, str] = {}
        frontier = [(match.value, match.name) for match in using]
        seen = {value for value, _ in frontier}
        while frontier:
            value, name = frontier.pop()
            for op, _ in self.graph.uses[value]:
                for result in self.graph.results[op]:
                    if self.graph.kinds[op] == wanted:
                        names.setdefault(result, f"{kind} using {name}")
                    elif self.graph.derived[result] and result not in seen:
                        seen.add(result)
                        frontier.append((result, name))
        if not names:
            raise TacticError(f"no {kind} uses {', '.join(str(m) for m in using)}", span=span)
        return [Match(value, name) for value, name in sorted(names.items())]

    def match(self, value: int) -> Match:
        """A value of the program, called by its name or by the scope and kind of its op."""
        if value in self.argument_of:
            return self.named[self.argument_of[value]]
        op, _ = self.graph.producer[value]
        return Match(value, f"{self.scopes[op]}:{self.graph.kinds[op]}")

    def in_scope(self, op: int, pattern: str) -> bool:
        """Whether the named scope of an op, or one that it is inside of, matches."""
        return _scope_matches(pattern, self.scopes[op])

    def made_of(self, matches: Sequence[Match]) -> set[int]:
        """The values and what ops that only change type or shape make of them."""
        found = {match.value for match in matches}
        frontier = list(found)
        while frontier:
            for op, _ in self.graph.uses[frontier.pop()]:
                for result in self.graph.results[op]:
                    if self.graph.derived[result] and result not in found:
                        found.add(result)
                        frontier.append(result)
        return found

    def no_columns(self, axis: Axis) -> str:
        """Why there are no Megatron pairs for an axis, for a message; empty if there are some."""
        if columns(self.structure, axis.size):
            return ""
        found = obstacles(self.structure, axis.size)
        if not found:
            return "no parameter is multiplied with data"
        argument, dim, flow = found[0]
        where = self.graph.locations[flow.stopped_at] if flow.stopped_at is not None else ""
        reason = flow.reason or "no other weight contracts it"
        at = f" at {where}" if where else ""
        name = self.graph.arguments[argument].name
        return f"no pair of weights: dimension {dim} of {name} ends: {reason}{at}"

    def summed(self, axis: str) -> list[Match]:
        """The values of which the present plan has an all_reduce over the whole axis."""
        state = self.session.state
        atoms = {state.axes.index(atom) for atom in self.session.atoms[axis]}
        plan = self.session.plan()
        found: dict[int, Match] = {}
        for reshard in plan.reshards:
            if reshard.kind == "all_reduce" and atoms <= set(reshard.move.group):
                value = plan.values[reshard.source].value
                found.setdefault(value, self.match(value))
        return list(found.values())

    # --- facts and quantities -------------------------------------------------------------------

    def fact(self, name: str) -> int | None:
        """A fact of the program or the mesh; None if there is no such fact."""
        if name == "layers":
            return count_layers(
                [
                    (self.graph.arguments[i].name, self.graph.shapes[self.graph.arguments[i].value])
                    for i in self.roles.of(PARAM)
                ]
            )
        if name == "parameters":
            return sum(
                prod(self.graph.shapes[self.graph.arguments[i].value]) for i in self.roles.of(PARAM)
            )
        return self.session.mesh.devices if name == "devices" else None

    def quantities(self) -> dict[str, float]:
        """The quantities of the present state."""
        plan = self.session.plan()
        counts = plan.counts()
        found: dict[str, float] = {
            f"{kind}.{what}": counts[kind][what]
            for kind in KINDS
            for what in ("count", "bytes", "ring_bytes")
        }
        for what in ("count", "bytes", "ring_bytes"):
            found[f"collectives.{what}"] = sum(counts[kind][what] for kind in KINDS)
        found["argument_bytes"] = plan.argument_bytes()
        found["fallbacks"] = len(plan.fallbacks)
        found["conflicts"] = len(self.session.open_conflicts())
        if self.measure is not None:
            found.update(self.measure(self.session))
        for short, full in _SAME.items():
            if full in found:
                found[short] = found[full]
        return found


_WRAPPER = re.compile(r"\w+\((?P<inside>[^()]*)\)")


def scope_of(location: str) -> str:
    """The named scope in a location text: `m.py:3:1 (jit(step)/jvp(layer_0)/attn/dot)` →
    `layer_0/attn/dot`; transformations of JAX (`jit`, `jvp`, `transpose`) are taken off."""
    match = _SCOPE.search(location)
    scope = match["scope"] if match else ("" if ":" in location else location)
    parts = scope.split("/")
    while parts and re.fullmatch(r"p?jit\(.*\)", parts[0]):
        parts = parts[1:]
    text = "/".join(parts)
    while True:
        shorter = _WRAPPER.sub(lambda m: m["inside"], text)
        if shorter == text:
            return text
        text = shorter


def _scope_matches(pattern: str, scope: str) -> bool:
    expression = compile_pattern(pattern)
    return any(expression.fullmatch(prefix) for prefix in _prefixes(scope))


def _prefixes(scope: str) -> list[str]:
    """The scope and all that it is inside of."""
    parts = scope.split("/") if scope else []
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)\Z")
_STACKED = re.compile(r"(layers|blocks|h|stack|decoder|encoder)\Z")


def count_layers(parameters: Sequence[tuple[str, tuple[int, ...]]]) -> int:
    """How many repeated layers there are: the longest run of numbered path components
    (`layer_0`, `layers/3`, else `w0`), or the common leading size under `layers/`; 0 if none."""
    inner: dict[tuple[str, str], set[int]] = {}
    leaves: dict[tuple[str, str], set[int]] = {}
    stacked: set[int] = set()
    for name, shape in parameters:
        parts = name.split("/")
        for depth, part in enumerate(parts):
            match = _NUMBERED.match(part)
            if match:
                table = leaves if depth == len(parts) - 1 else inner
                key = ("/".join(parts[:depth]), match["stem"])
                table.setdefault(key, set()).add(int(match["number"]))
        if any(_STACKED.match(part) for part in parts[:-1]):
            stacked.add(shape[0] if shape else 0)
    for table in (inner, leaves):
        if table and table is inner:
            return max(len(numbers) for numbers in table.values())
        if len(stacked) == 1:
            return stacked.pop()
        if table:
            return max(len(numbers) for numbers in table.values())
    return 0
