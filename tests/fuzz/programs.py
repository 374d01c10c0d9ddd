"""Random well-typed programs: each op kind has a maker that takes values at hand and adds one op.

A program is a list of lines in SSA form. Floats are small whole numbers where they can be, so that
sums are exact and a wrong part shows as a wrong number and not as rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

Shape = tuple[int, ...]
SIZES = (1, 2, 3, 4, 6, 7, 8, 12)
LIMIT = 1500  # elements


@dataclass(frozen=True)
class Value:
    """An SSA value: name, shape and element type."""

    name: str
    shape: Shape
    element: str = "f32"

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{s}x' for s in self.shape)}{self.element}>"


@dataclass(frozen=True)
class Line:
    """One op: the value that it makes, its text, and the values that it takes."""

    value: Value
    text: str
    takes: tuple[Value, ...]
    kind: str


@dataclass
class Program:
    """Arguments, lines in order, results."""

    arguments: list[Value] = field(default_factory=list[Value])
    lines: list[Line] = field(default_factory=list[Line])
    results: list[Value] = field(default_factory=list[Value])

    @property
    def values(self) -> list[Value]:
        return [*self.arguments, *(line.value for line in self.lines)]

    def text(self) -> str:
        """The module."""
        arguments = ", ".join(f'%{v.name}: {v.type} loc("{v.name}")' for v in self.arguments)
        results = ", ".join(v.type for v in self.results)
        body = "\n".join(f"  {line.text}" for line in self.lines)
        names = ", ".join(f"%{v.name}" for v in self.results)
        return (
            f"func.func @main({arguments}) -> ({results}) {{\n{body}\n"
            f"  return {names} : {results}\n}}\n"
        )


class Maker:
    """Adds random ops to a program."""

    def __init__(self, rng: random.Random, program: Program) -> None:
        self.rng = rng
        self.program = program
        self.count = 0

    # --- values -------------------------------------------------------------------------------

    def shape(self, low: int = 1, high: int = 3) -> Shape:
        while True:
            shape = tuple(self.rng.choice(SIZES) for _ in range(self.rng.randint(low, high)))
            if prod(shape) <= LIMIT:
                return shape

    def argument(self, shape: Shape, element: str = "f32") -> Value:
        value = Value(f"a{len(self.program.arguments)}", shape, element)
        self.program.arguments.append(value)
        return value

    def pick(self, rank: int = 0, element: str = "f32") -> Value:
        """A value at hand of at least that rank, or a new argument."""
        found = [v for v in self.program.values if v.element == element and len(v.shape) >= rank]
        if found and self.rng.random() < 0.9:
            return self.rng.choice(found[-6:])
        return self.argument(self.shape(max(rank, 1)), element)

    def like(self, value: Value) -> Value:
        """A value of the same type, or a new argument."""
        found = [v for v in self.program.values if v.type == value.type]
        if found and self.rng.random() < 0.7:
            return self.rng.choice(found)
        return self.argument(value.shape, value.element)

    def index(self, size: int, shape: Shape = ()) -> Value:
        """A new integer argument; what it holds runs a little out of [0, size)."""
        return self.argument(shape, "i32")

    def emit(
        self, kind: str, shape: Shape, text: str, takes: list[Value], element: str = "f32"
    ) -> Value:
        value = Value(f"v{self.count}", shape, element)
        self.count += 1
        line = f"%{value.name} = {text} -> {value.type}"
        self.program.lines.append(Line(value, line, tuple(takes), kind))
        return value

    def scalar(self, text: str, element: str = "f32") -> Value:
        value = Value(f"v{self.count}", (), element)
        self.count += 1
        line = f"%{value.name} = stablehlo.constant dense<{text}> : {value.type}"
        self.program.lines.append(Line(value, line, (), "constant"))
        return value

    def same(self, name: str, takes: list[Value]) -> Value:
        """An elementwise op on values of one type."""
        value = takes[0]
        made = Value(f"v{self.count}", value.shape, value.element)
        self.count += 1
        names = ", ".join(f"%{v.name}" for v in takes)
        line = f"%{made.name} = stablehlo.{name} {names} : {made.type}"
        self.program.lines.append(Line(made, line, tuple(takes), name))
        return made


def ints(values: list[int] | Shape | range) -> str:
    return "array<i64" + (": " + ", ".join(map(str, values)) if len(values) else "") + ">"


def unary(m: Maker) -> Value:
    return m.same(m.rng.choice(["tanh", "negate", "abs", "sign", "floor"]), [m.pick()])


def binary(m: Maker) -> Value:
    value = m.pick()
    name = m.rng.choice(["add", "subtract", "maximum", "minimum", "add", "multiply"])
    made = m.same(name, [value, m.like(value)])
    return m.same("tanh", [made]) if name == "multiply" else made


def broadcast(m: Maker) -> Value:
    value = m.pick()
    shape, dims = list(value.shape), list(range(len(value.shape)))
    at = m.rng.randint(0, len(shape))
    extra = m.rng.choice((2, 3, 4))
    if prod(shape) * extra > LIMIT or len(shape) > 3:
        return unary(m)
    shape.insert(at, extra)
    dims = [d + (d >= at) for d in dims]
    for d, e in enumerate(dims):
        if value.shape[d] == 1 and m.rng.random() < 0.5 and prod(shape) * 4 <= LIMIT:
            shape[e] = 4
    text = (
        f'"stablehlo.broadcast_in_dim"(%{value.name}) <{{broadcast_dimensions = {ints(dims)}}}> : '
        f"({value.type})"
    )
    return m.emit("broadcast_in_dim", tuple(shape), text, [value])


def transpose(m: Maker) -> Value:
    value = m.pick(2)
    order = list(range(len(value.shape)))
    m.rng.shuffle(order)
    text = (
        f'"stablehlo.transpose"(%{value.name}) <{{permutation = {ints(order)}}}> : ({value.type})'
    )
    return m.emit("transpose", tuple(value.shape[d] for d in order), text, [value])


def reshape(m: Maker) -> Value:
    value = m.pick()
    total = prod(value.shape)
    shape: list[int] = []
    while total > 1 and len(shape) < 3:
        divisors = [d for d in range(1, total + 1) if total % d == 0]
        part = m.rng.choice(divisors)
        shape.append(part)
        total //= part
    if total > 1 or not shape:
        shape.append(total)
    text = f'"stablehlo.reshape"(%{value.name}) : ({value.type})'
    return m.emit("reshape", tuple(shape), text, [value])


INIT = {
    "add": ("0.0", "2.0"),
    "maximum": ("0xFF800000", "0.5"),
    "minimum": ("0x7F800000", "0.5"),
}


def body(name: str) -> str:
    return (
        "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): "
        f"%s = stablehlo.{name} %p, %q : tensor<f32> "
        '"stablehlo.return"(%s) : (tensor<f32>) -> () })'
    )


def reduce(m: Maker) -> Value:
    value = m.pick(1)
    count = m.rng.randint(1, len(value.shape))
    dims = sorted(m.rng.sample(range(len(value.shape)), count))
    name = m.rng.choice(list(INIT))
    init = m.scalar(INIT[name][m.rng.random() < 0.2])
    text = (
        f'"stablehlo.reduce"(%{value.name}, %{init.name}) <{{dimensions = {ints(dims)}}}> '
        f"{body(name)} : ({value.type}, tensor<f32>)"
    )
    shape = tuple(s for d, s in enumerate(value.shape) if d not in dims)
    return m.emit("reduce", shape, text, [value, init])


def dot(m: Maker) -> Value:
    left = m.pick(2)
    order = list(range(len(left.shape)))
    m.rng.shuffle(order)
    contracted = order[: m.rng.randint(1, 1 + (len(order) > 2))]
    batch = order[len(contracted) : len(contracted) + (m.rng.random() < 0.4)]
    free = m.shape(0, 1)
    right_dims = [("c", d) for d in contracted] + [("b", d) for d in batch]
    right_dims += [("f", i) for i in range(len(free))]
    m.rng.shuffle(right_dims)
    shape = tuple(free[i] if k == "f" else left.shape[i] for k, i in right_dims)
    right = m.argument(shape)
    rest = [d for d in range(len(left.shape)) if d not in contracted and d not in batch]
    result = tuple(left.shape[d] for d in batch) + tuple(left.shape[d] for d in rest)
    result += tuple(free[i] for k, i in right_dims if k == "f")
    if prod(result) > LIMIT:
        return unary(m)

    def where(key: str, dims: list[int]) -> list[int]:
        return [right_dims.index((key, d)) for d in dims]

    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {batch}, "
        f"rhs_batching_dimensions = {where('b', batch)}, "
        f"lhs_contracting_dimensions = {contracted}, "
        f"rhs_contracting_dimensions = {where('c', contracted)}>"
    )
    text = (
        f'"stablehlo.dot_general"(%{left.name}, %{right.name}) '
        f"<{{dot_dimension_numbers = {numbers}}}> : ({left.type}, {right.type})"
    )
    return m.same("tanh", [m.emit("dot_general", result, text, [left, right])])


def concatenate(m: Maker) -> Value:
    left = m.pick(1)
    dim = m.rng.randrange(len(left.shape))
    right = m.like(left)
    shape = tuple(s * 2 if d == dim else s for d, s in enumerate(left.shape))
    if prod(shape) > LIMIT:
        return unary(m)
    text = (
        f'"stablehlo.concatenate"(%{left.name}, %{right.name}) <{{dimension = {dim} : i64}}> : '
        f"({left.type}, {right.type})"
    )
    return m.emit("concatenate", shape, text, [left, right])


def slice_(m: Maker) -> Value:
    value = m.pick(1)
    starts, limits, strides = [], [], []
    for size in value.shape:
        start = m.rng.randrange(size) if m.rng.random() < 0.5 else 0
        limit = m.rng.randint(start + 1, size) if m.rng.random() < 0.5 else size
        starts.append(start)
        limits.append(limit)
        strides.append(m.rng.choice((1, 1, 2)))
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))
    text = (
        f'"stablehlo.slice"(%{value.name}) <{{start_indices = {ints(starts)}, '
        f"limit_indices = {ints(limits)}, strides = {ints(strides)}}}> : ({value.type})"
    )
    return m.emit("slice", shape, text, [value])


def pad(m: Maker) -> Value:
    value = m.pick(1)
    fill = m.scalar(m.rng.choice(["0.0", "1.0"]))
    low = [m.rng.choice((0, 0, 1, 2)) for _ in value.shape]
    high = [m.rng.choice((0, 0, 1, 3)) for _ in value.shape]
    inner = [m.rng.choice((0, 0, 0, 1)) for _ in value.shape]
    shape = tuple(
        s + a + b + max(0, s - 1) * i
        for s, a, b, i in zip(value.shape, low, high, inner, strict=True)
    )
    if prod(shape) > LIMIT:
        return unary(m)
    text = (
        f'"stablehlo.pad"(%{value.name}, %{fill.name}) <{{edge_padding_low = {ints(low)}, '
        f"edge_padding_high = {ints(high)}, interior_padding = {ints(inner)}}}> : "
        f"({value.type}, tensor<f32>)"
    )
    return m.emit("pad", shape, text, [value, fill])


def reverse(m: Maker) -> Value:
    value = m.pick(1)
    dims = [d for d in range(len(value.shape)) if m.rng.random() < 0.6]
    text = f'"stablehlo.reverse"(%{value.name}) <{{dimensions = {ints(dims)}}}> : ({value.type})'
    return m.emit("reverse", value.shape, text, [value])


def iota(m: Maker) -> Value:
    value = m.pick(1)
    dim = m.rng.randrange(len(value.shape))
    text = f'"stablehlo.iota"() <{{iota_dimension = {dim} : i64}}> : ()'
    return m.same("add", [value, m.emit("iota", value.shape, text, [])])


def select(m: Maker) -> Value:
    left = m.pick()
    right = m.like(left)
    compared = (
        f'"stablehlo.compare"(%{left.name}, %{right.name}) <{{comparison_direction = '
        f"#stablehlo<comparison_direction {m.rng.choice(['LT', 'GE', 'EQ'])}>}}> : "
        f"({left.type}, {right.type})"
    )
    mask = m.emit("compare", left.shape, compared, [left, right], "i1")
    text = (
        f'"stablehlo.select"(%{mask.name}, %{left.name}, %{right.name}) : '
        f"({mask.type}, {left.type}, {right.type})"
    )
    return m.emit("select", left.shape, text, [mask, left, right])


def dynamic_slice(m: Maker) -> Value:
    value = m.pick(1)
    sizes = [s if m.rng.random() < 0.5 else m.rng.randint(1, s) for s in value.shape]
    starts = [m.index(s) for s in value.shape]
    names = "".join(f", %{v.name}" for v in starts)
    text = (
        f'"stablehlo.dynamic_slice"(%{value.name}{names}) <{{slice_sizes = {ints(sizes)}}}> : '
        f"({', '.join([value.type, *(v.type for v in starts)])})"
    )
    return m.emit("dynamic_slice", tuple(sizes), text, [value, *starts])


def dynamic_update_slice(m: Maker) -> Value:
    value = m.pick(1)
    sizes = tuple(s if m.rng.random() < 0.5 else m.rng.randint(1, s) for s in value.shape)
    update = m.argument(sizes)
    starts = [m.index(s) for s in value.shape]
    takes = [value, update, *starts]
    text = (
        f'"stablehlo.dynamic_update_slice"({", ".join(f"%{v.name}" for v in takes)}) : '
        f"({', '.join(v.type for v in takes)})"
    )
    return m.emit("dynamic_update_slice", value.shape, text, takes)


def gather(m: Maker) -> Value:
    value = m.pick(1)
    dim = m.rng.randrange(len(value.shape))
    count = m.rng.choice((2, 4, 6))
    indices = m.index(value.shape[dim], (count, 1))
    sizes = [1 if d == dim else s for d, s in enumerate(value.shape)]
    rest = [s for d, s in enumerate(value.shape) if d != dim]
    offset = list(range(1, 1 + len(rest)))
    if count * prod(rest) > LIMIT:
        return unary(m)
    text = (
        f'"stablehlo.gather"(%{value.name}, %{indices.name}) <{{dimension_numbers = '
        f"#stablehlo.gather<offset_dims = {offset}, collapsed_slice_dims = [{dim}], "
        f"start_index_map = [{dim}], index_vector_dim = 1>, slice_sizes = {ints(sizes)}}}> : "
        f"({value.type}, {indices.type})"
    )
    return m.emit("gather", (count, *rest), text, [value, indices])


def scatter(m: Maker) -> Value:
    value = m.pick(1)
    dim = m.rng.randrange(len(value.shape))
    count = m.rng.choice((2, 4, 6))
    indices = m.index(value.shape[dim], (count, 1))
    rest = [s for d, s in enumerate(value.shape) if d != dim]
    updates = m.argument((count, *rest))
    window = list(range(1, 1 + len(rest)))
    name = m.rng.choice(["add", "maximum"])
    text = (
        f'"stablehlo.scatter"(%{value.name}, %{indices.name}, %{updates.name}) '
        f"<{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {window}, "
        f"inserted_window_dims = [{dim}], scatter_dims_to_operand_dims = [{dim}], "
        f"index_vector_dim = 1>}}> {body(name)} : ({value.type}, {indices.type}, {updates.type})"
    )
    return m.emit("scatter", value.shape, text, [value, indices, updates])


def sort(m: Maker) -> Value:
    value = m.pick(1)
    dim = m.rng.randrange(len(value.shape))
    compare = (
        '({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = "stablehlo.compare"(%p, %q) '
        "<{comparison_direction = #stablehlo<comparison_direction LT>}> : "
        "(tensor<f32>, tensor<f32>) -> tensor<i1> "
        '"stablehlo.return"(%s) : (tensor<i1>) -> () })'
    )
    text = (
        f'"stablehlo.sort"(%{value.name}) <{{dimension = {dim} : i64, is_stable = true}}> '
        f"{compare} : ({value.type})"
    )
    return m.emit("sort", value.shape, text, [value])


def reduce_window(m: Maker) -> Value:
    value = m.pick(1)
    name = m.rng.choice(list(INIT))
    init = m.scalar(INIT[name][0])
    window, strides, padding, shape = [], [], [], []
    for size in value.shape:
        w = m.rng.choice([k for k in (1, 1, 2, 3) if k <= size])
        s = m.rng.choice((1, 1, 2))
        low, high = (m.rng.choice((0, 0, 1)) if w > 1 else 0 for _ in range(2))
        window.append(w)
        strides.append(s)
        padding.append(f"[{low}, {high}]")
        shape.append((size + low + high - w) // s + 1)
    text = (
        f'"stablehlo.reduce_window"(%{value.name}, %{init.name}) <{{window_dimensions = '
        f"{ints(window)}, window_strides = {ints(strides)}, padding = dense<[{', '.join(padding)}]>"
        f" : tensor<{len(window)}x2xi64>}}> {body(name)} : ({value.type}, tensor<f32>)"
    )
    return m.emit("reduce_window", tuple(shape), text, [value, init])


def convolution(m: Maker) -> Value:
    groups = m.rng.choice((1, 1, 2))
    by_batch = groups > 1 and m.rng.random() < 0.4
    batch, width = m.rng.choice((2, 4)) * (groups if by_batch else 1), m.rng.choice((5, 6, 8))
    features, out = 2 * (1 if by_batch else groups), 2 * groups
    left = m.argument((batch, width, features))
    right = m.argument((3, features // (1 if by_batch else groups), out))
    stride, low, high = m.rng.choice((1, 2)), m.rng.choice((0, 1)), m.rng.choice((0, 1))
    dilation = m.rng.choice((1, 1, 2))
    span = width + low + high
    taken = (3 - 1) * dilation + 1
    if span < taken:
        return unary(m)
    spatial = (span - taken) // stride + 1
    shape = (batch // (groups if by_batch else 1), spatial, out)
    text = (
        f'"stablehlo.convolution"(%{left.name}, %{right.name}) <{{dimension_numbers = '
        f"#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = {ints([stride])}, "
        f"padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>, rhs_dilation = {ints([dilation])}, "
        f"feature_group_count = {1 if by_batch else groups} : i64, "
        f"batch_group_count = {groups if by_batch else 1} : i64}}> : ({left.type}, {right.type})"
    )
    return m.same("tanh", [m.emit("convolution", shape, text, [left, right])])


def loop(m: Maker) -> Value:
    value = m.pick(1)
    other = m.like(value)
    start, bound, one = m.scalar("0", "i32"), m.scalar("3", "i32"), m.scalar("1", "i32")
    n = m.count
    text = (
        f'"stablehlo.while"(%{start.name}, %{value.name}) ({{ ^bb0(%li{n}: tensor<i32>, %lh{n}: '
        f'{value.type}): %lp{n} = "stablehlo.compare"(%li{n}, %{bound.name}) '
        f"<{{comparison_direction = #stablehlo<comparison_direction LT>}}> : "
        f"(tensor<i32>, tensor<i32>) -> tensor<i1> "
        f'"stablehlo.return"(%lp{n}) : (tensor<i1>) -> () }}, {{ ^bb0(%li{n}: tensor<i32>, %lh{n}: '
        f"{value.type}): %lj{n} = stablehlo.add %li{n}, %{one.name} : tensor<i32> "
        f"%la{n} = stablehlo.add %lh{n}, %{other.name} : {value.type} "
        f"%lt{n} = stablehlo.tanh %la{n} : {value.type} "
        f'"stablehlo.return"(%lj{n}, %lt{n}) : (tensor<i32>, {value.type}) -> () }}) : '
        f"(tensor<i32>, {value.type}) -> (tensor<i32>, {value.type})"
    )
    made = Value(f"v{n}", value.shape)
    m.count += 1
    line = f"%lw{n}:2 = {text}\n  %{made.name} = stablehlo.negate %lw{n}#1 : {made.type}"
    takes = (start, bound, one, value, other)
    m.program.lines.append(Line(made, line, takes, "while"))
    return made


MAKERS: dict[str, Callable[[Maker], Value]] = {
    "unary": unary,
    "binary": binary,
    "broadcast": broadcast,
    "transpose": transpose,
    "reshape": reshape,
    "reduce": reduce,
    "dot": dot,
    "concatenate": concatenate,
    "slice": slice_,
    "pad": pad,
    "reverse": reverse,
    "iota": iota,
    "select": select,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "scatter": scatter,
    "sort": sort,
    "reduce_window": reduce_window,
    "convolution": convolution,
    "loop": loop,
}


def random_program(rng: random.Random, ops: int) -> Program:
    """A program of about `ops` ops; its results are what nothing else takes."""
    program = Program()
    maker = Maker(rng, program)
    maker.argument(maker.shape(2))
    names = list(MAKERS)
    for _ in range(ops):
        MAKERS[rng.choice(names)](maker)
    taken = {v.name for line in program.lines for v in line.takes}
    program.results = [line.value for line in program.lines if line.value.name not in taken] or [
        program.lines[-1].value
    ]
    return program
