"""What is each argument for, and which result is its next value?

Roles are `param`, `optimizer`, `input`, `step` and `rng`: by name first, then by use and donation.
An argument and the result that is its next value are a pair (DESIGN, section 4, rule 4): by name
first, then by use among the donated ones, and only then as JAX paired the buffers, which is first
come first served among equal shapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from ..partir_dialect.rules.base import Kind
from .graph import ARGUMENT, CARRY_KINDS, Graph

PARAM, OPTIMIZER, INPUT, STEP, RNG = "param", "optimizer", "input", "step", "rng"

_WORDS: dict[str, frozenset[str]] = {
    OPTIMIZER: frozenset(
        "opt optim optimizer opt_state optimizer_state optimiser optimiser_state adam mu nu "
        "momentum moments velocity trace exp_avg exp_avg_sq first_moment second_moment ema".split()
    ),
    PARAM: frozenset(
        "params param parameters parameter weights variables theta batch_stats model".split()
    ),
    INPUT: frozenset(
        "batch inputs input cache tokens token targets target labels label image images example "
        "examples data position positions mask".split()
    ),
}
_STEP_WORDS = frozenset("step steps count iteration iterations num_steps global_step t".split())
_RNG_WORDS = ("rng", "key", "seed")
_RAW_KEYS = ((2,), (4,))
_NAMELESS = re.compile(r"arg\d+\Z")
_STATEFUL = (PARAM, OPTIMIZER)


@dataclass(frozen=True)
class Donations:
    """What JAX says of donated buffers: `pairs` argument → result (`tf.aliasing_output`), and all
    donated arguments, resolved or not (`jax.buffer_donor`)."""

    pairs: Mapping[int, int] = field(default_factory=dict[int, int])
    donors: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Roles:
    """`roles[i]` of each argument; `pairs` argument index → index of the result that is its next
    value; `states` parameter → the optimizer arguments that belong to it."""

    roles: tuple[str, ...]
    pairs: Mapping[int, int]
    states: Mapping[int, tuple[int, ...]]

    def of(self, role: str) -> tuple[int, ...]:
        """The arguments of that role, in order."""
        return tuple(i for i, found in enumerate(self.roles) if found == role)


def donations(function: FuncOp) -> Donations:
    """Reads the donation attributes of main's arguments."""
    pairs: dict[int, int] = {}
    donors: set[int] = set()
    for index, attributes in enumerate(function.arg_attrs.data if function.arg_attrs else ()):
        assert isinstance(attributes, DictionaryAttr)
        output = attributes.data.get("tf.aliasing_output")
        if isinstance(output, IntegerAttr):
            pairs[index] = output.value.data
        if output is not None or "jax.buffer_donor" in attributes.data:
            donors.add(index)
    return Donations(pairs, frozenset(donors))


def sources_of(graph: Graph, op: int) -> tuple[int, ...]:
    """What the results of an op are made of; for a loop carry also what the body yields."""
    if graph.kinds[op] not in CARRY_KINDS:
        return graph.operands[op]
    together = graph.slot_ops[graph.slots[op]]
    return tuple(value for other in together for value in graph.operands[other])


def targets_of(graph: Graph, op: int) -> tuple[int, ...]:
    """What is made of the operands of an op; of a loop carry what enters the body and leaves."""
    if graph.kinds[op] not in CARRY_KINDS:
        return graph.results[op]
    together = graph.slot_ops[graph.slots[op]]
    return tuple(value for other in together for value in graph.results[other])


def find_roles(graph: Graph, donated: Donations | None = None) -> Roles:
    """The role of every argument and its pair among the results; linear in the ops but for the
    short elementwise walks around results."""
    donated = donated or Donations()
    named = [_role_by_name(graph, a.name, a.value) for a in graph.arguments]
    pairs = _pair(graph, named, donated)
    for a, r in pairs.items():  # a text without locations still names its results
        path = graph.outcomes[r].name.removeprefix("result/")
        named[a] = named[a] or _role_by_name(graph, path, graph.arguments[a].value)
    reach = _reaches_unpaired(graph, pairs)
    roles = tuple(
        role or _role_by_use(graph, index, pairs, reach) for index, role in enumerate(named)
    )
    return Roles(roles, pairs, _states(graph, roles, pairs))


# --- by name ------------------------------------------------------------------------------------


def _role_by_name(graph: Graph, name: str, value: int) -> str | None:
    """The first path component that is a word for a role decides; `step` and `rng` by the last."""
    parts = [part.lower() for part in name.split("/")]
    shape, dtype = graph.shapes[value], graph.dtypes[value]
    found = None
    for part in parts:
        for role, words in _WORDS.items():
            if part in words:
                found = found or role
    if not shape and parts[-1] in _STEP_WORDS and found != INPUT:
        return STEP
    if dtype == "ui32" and any(word in parts[-1] for word in _RNG_WORDS):
        return RNG
    if dtype == "ui32" and shape in _RAW_KEYS and _NAMELESS.match(name):
        return RNG
    return found


def _next_values(graph: Graph) -> dict[str, int]:
    return {outcome.name.removeprefix("result/"): i for i, outcome in enumerate(graph.outcomes)}


def _same_type(graph: Graph, a: int, r: int) -> bool:
    argument, result = graph.arguments[a].value, graph.outcomes[r].value
    return (
        graph.shapes[argument] == graph.shapes[result]
        and graph.dtypes[argument] == graph.dtypes[result]
    )


def _pair(graph: Graph, named: list[str | None], donated: Donations) -> dict[int, int]:
    pairs: dict[int, int] = {}
    taken: set[int] = set()

    def join(a: int, r: int) -> None:
        if a not in pairs and r not in taken and _same_type(graph, a, r):
            pairs[a] = r
            taken.add(r)

    results = _next_values(graph)
    for a, argument in enumerate(graph.arguments):
        if argument.name in results:
            join(a, results[argument.name])
    for a, r in _by_group(graph, named, set(pairs), taken):
        join(a, r)
    for a, r in _by_use(graph, donated.donors - pairs.keys(), taken):
        join(a, r)
    for a, r in donated.pairs.items():
        if a < len(graph.arguments) and r < len(graph.outcomes):
            join(a, r)
    return dict(sorted(pairs.items()))


def _by_group(
    graph: Graph, named: list[str | None], paired: set[int], taken: set[int]
) -> list[tuple[int, int]]:
    """A step that returns a tuple: `params/…` against `result/0/…`, tree by tree.

    Two trees match if every leaf of the argument tree has a leaf of the same sub-path and type in
    the result tree. Several matches are decided by use: the tree whose leaves are updated nearest.
    """
    argument_trees: dict[str, dict[str, int]] = {}
    for a, argument in enumerate(graph.arguments):
        root, _, rest = argument.name.partition("/")
        if rest and a not in paired and named[a] in _STATEFUL:
            argument_trees.setdefault(root, {})[rest] = a
    result_trees: dict[str, dict[str, int]] = {}
    for path, r in _next_values(graph).items():
        root, _, rest = path.partition("/")
        if rest and r not in taken:
            result_trees.setdefault(root, {})[rest] = r
    found: list[tuple[int, tuple[int, int]]] = []
    for leaves in argument_trees.values():
        for outcome in result_trees.values():
            if all(
                rest in outcome and _same_type(graph, a, outcome[rest])
                for rest, a in leaves.items()
            ):
                found.extend(
                    (_nearness(graph, a, outcome[rest]), (a, outcome[rest]))
                    for rest, a in leaves.items()
                )
    return [pair for _, pair in sorted(found)]


# --- by use -------------------------------------------------------------------------------------


def _elementwise(graph: Graph, op: int) -> bool:
    """Whether every dimension of every result is the same dimension of the operands."""
    shape = graph.op_shapes[op]
    return (
        bool(shape.inputs)
        and bool(shape.outputs)
        and all(factor.kind is Kind.PARALLEL for factor in shape.factors)
        and any(dims == shape.outputs[0] for dims in shape.inputs)
    )


def _updated_from(graph: Graph, result: int, limit: int = 40) -> dict[int, int]:
    """Arguments that the result is an elementwise function of, with their distance in ops."""
    by_value = {argument.value: a for a, argument in enumerate(graph.arguments)}
    distance = {graph.outcomes[result].value: 0}
    frontier = list(distance)
    found: dict[int, int] = {}
    for depth in range(limit):
        following: list[int] = []
        for value in frontier:
            op, _ = graph.producer[value]
            if graph.kinds[op] == ARGUMENT:
                found.setdefault(by_value[value], depth)
            elif _elementwise(graph, op):
                for operand in graph.operands[op]:
                    if operand not in distance:
                        distance[operand] = depth + 1
                        following.append(operand)
        frontier = following
    return found


_FAR = 1000


def _nearness(graph: Graph, a: int, r: int) -> int:
    return _updated_from(graph, r).get(a, _FAR)


def _by_use(graph: Graph, donors: frozenset[int], taken: set[int]) -> list[tuple[int, int]]:
    """Donated arguments with results that are elementwise updates of them, nearest first."""
    if not donors:
        return []
    candidates = [
        (distance, r, a)
        for r in range(len(graph.outcomes))
        if r not in taken
        for a, distance in _updated_from(graph, r).items()
        if a in donors
    ]
    return [(a, r) for _, r, a in sorted(candidates)]


def _reaches_unpaired(graph: Graph, pairs: Mapping[int, int]) -> list[bool]:
    """For each value, whether a result that is no next value (a loss, logits) depends on it."""
    paired = set(pairs.values())
    needed = [False] * len(graph.shapes)
    for r, outcome in enumerate(graph.outcomes):
        if r not in paired:
            needed[outcome.value] = True
    changed = True
    while changed:  # once more for each loop that carries a value round
        changed = False
        for op in range(len(graph.kinds) - 1, -1, -1):
            if any(needed[value] for value in targets_of(graph, op)):
                for operand in sources_of(graph, op):
                    changed = changed or not needed[operand]
                    needed[operand] = True
    return needed


def _role_by_use(graph: Graph, a: int, pairs: Mapping[int, int], needed: list[bool]) -> str:
    """Without a telling name: state that is updated elementwise is a parameter if the loss depends
    on it, else optimizer state (a scalar of integers: the step); all else is input."""
    if a not in pairs or a not in _updated_from(graph, pairs[a]):
        return INPUT
    value = graph.arguments[a].value
    if not graph.dtypes[value].startswith(("f", "bf")):
        return STEP if not graph.shapes[value] else INPUT
    unpaired = len(graph.outcomes) > len(pairs)
    if unpaired:
        return PARAM if needed[value] else OPTIMIZER
    return PARAM if _feeds_structure(graph, value) else OPTIMIZER


def _feeds_structure(graph: Graph, value: int) -> bool:
    """Whether the value gets into an op that is not elementwise within a few ops."""
    seen = {value}
    frontier = [value]
    for _ in range(6):
        following: list[int] = []
        for current in frontier:
            for op, _ in graph.uses[current]:
                shape = graph.op_shapes[op]
                if any(f.kind is Kind.REDUCTION for f in shape.factors):
                    return True
                following.extend(v for v in targets_of(graph, op) if v not in seen)
        seen.update(following)
        frontier = following
    return False


# --- parameters and their state -----------------------------------------------------------------


def _tail(name: str) -> tuple[str, ...]:
    """The path behind the first component that says the role; all of it if none does."""
    parts = name.split("/")
    for i, part in enumerate(parts[:-1]):
        if any(part.lower() in words for words in _WORDS.values()):
            return tuple(parts[i + 1 :])
    return tuple(parts)


def _states(
    graph: Graph, roles: tuple[str, ...], pairs: Mapping[int, int]
) -> dict[int, tuple[int, ...]]:
    """Optimizer arguments of each parameter: the same sub-path; else the same shape and a part in
    the parameter's update."""
    params = [a for a, role in enumerate(roles) if role == PARAM]
    tails = {_tail(graph.arguments[p].name): p for p in params}
    states: dict[int, list[int]] = {p: [] for p in params}
    loose: list[int] = []
    for a, role in enumerate(roles):
        if role != OPTIMIZER:
            continue
        parts = tuple(graph.arguments[a].name.split("/"))
        owner = next((tails[parts[i:]] for i in range(len(parts)) if parts[i:] in tails), None)
        if owner is None:
            loose.append(a)
        else:
            states[owner].append(a)
    if loose:
        for p in params:
            if p in pairs:
                near = _updated_from(graph, pairs[p])
                shape = graph.shapes[graph.arguments[p].value]
                for a in loose:
                    if a in near and graph.shapes[graph.arguments[a].value] == shape:
                        states[p].append(a)
    return {p: tuple(found) for p, found in states.items()}
