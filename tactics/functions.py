"""What can an expression ask of the program? A table of functions over values, axes and
structure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from ..engine.plan import Reshard
from ..engine.state import ANY
from ..partir_dialect.errors import TacticError
from .attention import attentions as find_attentions
from .experts import expert_borders as find_borders
from .experts import experts as find_experts
from .names import compile_pattern
from .pairs import columns as find_columns
from .pairs import rows as find_rows
from .pairs import vocabulary as find_vocabulary
from .signature import Formal, Signature
from .syntax import Constant
from .values import Axis, Match, Value
from .world import KINDS, World

Arguments = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language: what it takes, what it answers, how."""

    signature: Signature
    apply: Callable[[World, Arguments], Value]


FUNCTIONS: dict[str, Function] = {}


def _function(
    *formals: Formal, name: str | None = None
) -> Callable[[Callable[[World, Arguments], Value]], Callable[[World, Arguments], Value]]:
    def register(
        apply: Callable[[World, Arguments], Value],
    ) -> Callable[[World, Arguments], Value]:
        called = name or apply.__name__.strip("_")
        doc = (apply.__doc__ or "").strip()
        FUNCTIONS[called] = Function(Signature("function", called, formals, doc), apply)
        return apply

    return register


_X = Formal("x", "one")
_AXIS = Formal("axis", "axis")
_DIM = Formal("dim", "number")


def _one(arguments: Arguments, name: str = "x") -> Match:
    return cast("Match", arguments[name])


def _axis(arguments: Arguments) -> Axis:
    return cast("Axis", arguments["axis"])


def _shape(world: World, match: Match) -> tuple[int, ...]:
    return world.graph.shapes[match.value]


@_function(_X)
def rank(world: World, arguments: Arguments) -> Value:
    """The number of dimensions of a value."""
    return len(_shape(world, _one(arguments)))


def _sized(world: World, arguments: Arguments, shape: tuple[int, ...]) -> int:
    dim = int(cast("float", arguments["dim"]))
    if not -len(shape) <= dim < len(shape):
        raise TacticError(f"{_one(arguments).name} of rank {len(shape)} has no dimension {dim}")
    return shape[dim]


@_function(_X, _DIM)
def shape(world: World, arguments: Arguments) -> Value:
    """The size of one dimension of a value."""
    return _sized(world, arguments, _shape(world, _one(arguments)))


@_function(_X, _DIM)
def local(world: World, arguments: Arguments) -> Value:
    """The size of one dimension of a device's tile of a value, after the statements so far."""
    return _sized(world, arguments, world.session.local_shape(_one(arguments).value))


@_function(_X)
def elements(world: World, arguments: Arguments) -> Value:
    """How many elements a value has."""
    return prod(_shape(world, _one(arguments)))


@_function(_X, name="bytes")
def bytes_(world: World, arguments: Arguments) -> Value:
    """How many bytes a value has."""
    return world.graph.bytes_of(_one(arguments).value)


@_function(_X, name="dtype")
def dtype(world: World, arguments: Arguments) -> Value:
    """The element type of a value, as text: `"f32"`."""
    return world.graph.dtypes[_one(arguments).value]


@_function(_AXIS)
def size(world: World, arguments: Arguments) -> Value:
    """The size of a mesh axis."""
    return _axis(arguments).size


@_function(_X, _AXIS)
def tiled(world: World, arguments: Arguments) -> Value:
    """Whether the axis tiles the value already."""
    return world.session.tiled_dim(_one(arguments).value, _axis(arguments).name) is not None


@_function(_X, _AXIS)
def pinned(world: World, arguments: Arguments) -> Value:
    """Whether an earlier `replicate` keeps the argument whole along the axis."""
    state, graph = world.session.state, world.graph
    slot = graph.slots[graph.producer[_one(arguments).value][0]]
    atoms = world.session.atoms[_axis(arguments).name]
    return all(state.entry[state.axes.index(atom)][slot] == ANY for atom in atoms)


@_function(_X, _AXIS)
def free_dim(world: World, arguments: Arguments) -> Value:
    """The first dimension whose local size, after the statements so far, divides by the axis; none
    if there is no such dimension."""
    local_shape = world.session.local_shape(_one(arguments).value)
    by = _axis(arguments).size
    return next((d for d, extent in enumerate(local_shape) if extent and extent % by == 0), None)


@_function(_X, Formal("pattern", "text"))
def matches(world: World, arguments: Arguments) -> Value:
    """Whether the value's name matches a pattern."""
    return compile_pattern(str(arguments["pattern"])).fullmatch(_one(arguments).name) is not None


@_function(Formal("x", "target"))
def count(world: World, arguments: Arguments) -> Value:
    """How many values a pattern or a role names."""
    return len(cast("list[Value]", arguments["x"]))


@_function(_X)
def states(world: World, arguments: Arguments) -> Value:
    """The optimizer state of a parameter, paired by name, shape and use."""
    index = world.argument_of.get(_one(arguments).value)
    owned = world.roles.states.get(-1 if index is None else index, ())
    return [world.named[i] for i in owned]


@_function(_AXIS)
def sums(world: World, arguments: Arguments) -> Value:
    """The values that are summed over the axis now, after the statements so far: what the present
    plan has an all_reduce for."""
    axis = _axis(arguments).name
    return list(world.summed(axis))


@_function()
def attentions(world: World, arguments: Arguments) -> Value:
    """The attentions, found by structure: rows of (queries, keys, values, mixed)."""
    return [
        tuple(world.match(v) for v in (a.queries, a.keys, a.values, a.mixed))
        for a in find_attentions(world.structure)
    ]


@_function()
def experts(world: World, arguments: Arguments) -> Value:
    """The weights that have one matrix for each expert: rows of (weight, expert dimension)."""
    return [(world.named[a], dim) for a, dim in find_experts(world.structure)]


@_function()
def expert_borders(world: World, arguments: Arguments) -> Value:
    """The values by which data gets to the experts and leaves them, forward and backward."""
    return [world.match(value) for value in find_borders(world.structure)]


_KIND = Formal("kind", "text")
_WITHIN = Formal("scope", "text", Constant(None))
_OF = Formal("of", "target", Constant(None))


def _collectives(world: World, arguments: Arguments) -> list[Reshard]:
    """The collectives of a kind in the present plan, of the ops in a scope, of the values named."""
    kind, scope, of = str(arguments["kind"]), arguments["scope"], arguments["of"]
    if kind not in (*KINDS, "collectives"):
        raise TacticError(
            f"no such kind of collective: {kind!r}", name=kind, candidates=(*KINDS, "collectives")
        )
    wanted = None if of is None else world.made_of(cast("list[Match]", of))
    plan = world.session.plan()
    found: list[Reshard] = []
    for reshard in plan.reshards:
        if reshard.kind not in KINDS or kind not in (reshard.kind, "collectives"):
            continue
        value = plan.values[reshard.source].value
        ops = (world.graph.producer[value][0], *(op for op, _ in reshard.uses))
        if scope is not None and not any(world.in_scope(op, str(scope)) for op in ops):
            continue
        if wanted is None or value in wanted:
            found.append(reshard)
    return found


@_function(_KIND, _WITHIN, _OF)
def collective_count(world: World, arguments: Arguments) -> Value:
    """How many collectives of a kind (`"all_reduce"`, or `"collectives"` for all) the statements so
    far need, at ops of a named scope, of the values named (seen through ops that change a
    parameter's type or shape)."""
    return sum(reshard.count for reshard in _collectives(world, arguments))


@_function(_KIND, _WITHIN, _OF)
def collective_bytes(world: World, arguments: Arguments) -> Value:
    """As `collective_count`, in result bytes per device."""
    return sum(reshard.count * reshard.bytes for reshard in _collectives(world, arguments))


@_function(_AXIS)
def columns(world: World, arguments: Arguments) -> Value:
    """Megatron's column weights, found by structure: rows of (weight, dimension)."""
    found = find_columns(world.structure, _axis(arguments).size)
    return [(world.named[column.argument], column.dim) for column in found]


@_function(_AXIS)
def rows(world: World, arguments: Arguments) -> Value:
    """The row weights of Megatron's columns: rows of (weight, dimension)."""
    found = find_rows(world.structure, _axis(arguments).size)
    return [(world.named[argument], dim) for argument, dim in found]


@_function()
def vocabulary(world: World, arguments: Arguments) -> Value:
    """Embedding tables and the weight of the last product: rows of (weight, vocabulary
    dimension)."""
    return [(world.named[a], dim) for a, dim in find_vocabulary(world.structure)]


def _numbers(arguments: Arguments) -> tuple[float, float]:
    return cast("float", arguments["a"]), cast("float", arguments["b"])


_AB = (Formal("a", "number"), Formal("b", "number"))


@_function(*_AB, name="min")
def _min(world: World, arguments: Arguments) -> Value:
    """The smaller of two numbers."""
    return min(_numbers(arguments))


@_function(*_AB, name="max")
def _max(world: World, arguments: Arguments) -> Value:
    """The larger of two numbers."""
    return max(_numbers(arguments))


@_function(Formal("a", "number"))
def ceil(world: World, arguments: Arguments) -> Value:
    """The next whole number."""
    return math.ceil(cast("float", arguments["a"]))


@_function(Formal("a", "number"))
def floor(world: World, arguments: Arguments) -> Value:
    """The whole number below."""
    return math.floor(cast("float", arguments["a"]))
