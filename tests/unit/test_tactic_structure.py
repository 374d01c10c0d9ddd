"""Megatron's pairs by structure, on small programs written for one aspect each."""

from __future__ import annotations

import pytest

from partir.engine.roles import find_roles
from partir.tactics.attention import attentions
from partir.tactics.experts import expert_borders, experts
from partir.tactics.pairs import columns as find_columns
from partir.tactics.pairs import obstacles, vocabulary
from partir.tactics.structure import Structure


def f32(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>"


class Text:
    """Writes a function, one op a line; every method returns the name of the result."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, tuple[int, ...]]] = []
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.count = 0

    def arg(self, name: str, *shape: int) -> str:
        ssa = f"%a{len(self.arguments)}"
        self.arguments.append((name, shape))
        self.shapes[ssa] = shape
        return ssa

    def emit(self, text: str, *shape: int) -> str:
        ssa = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {ssa} = {text}")
        self.shapes[ssa] = shape
        return ssa

    def dot(self, a: str, b: str, *, con, batch=((), ())) -> str:
        sa, sb = self.shapes[a], self.shapes[b]
        lead = [sa[i] for i in batch[0]]
        free_a = [n for i, n in enumerate(sa) if i not in (*con[0], *batch[0])]
        free_b = [n for i, n in enumerate(sb) if i not in (*con[1], *batch[1])]
        shape = (*lead, *free_a, *free_b)
        batching = f"batching_dims = {list(batch[0])} x {list(batch[1])}, " if lead else ""
        return self.emit(
            f"stablehlo.dot_general {a}, {b}, {batching}contracting_dims = "
            f"{list(con[0])} x {list(con[1])} : ({f32(*sa)}, {f32(*sb)}) -> {f32(*shape)}",
            *shape,
        )

    def mul(self, a: str, b: str, op: str = "multiply") -> str:
        shape = self.shapes[a]
        return self.emit(f"stablehlo.{op} {a}, {b} : {f32(*shape)}", *shape)

    def tanh(self, a: str) -> str:
        shape = self.shapes[a]
        return self.emit(f"stablehlo.tanh {a} : {f32(*shape)}", *shape)

    def reshape(self, a: str, *shape: int) -> str:
        return self.emit(
            f"stablehlo.reshape {a} : ({f32(*self.shapes[a])}) -> {f32(*shape)}", *shape
        )

    def transpose(self, a: str, *dims: int) -> str:
        old = self.shapes[a]
        shape = tuple(old[d] for d in dims)
        return self.emit(
            f"stablehlo.transpose {a}, dims = {list(dims)} : ({f32(*old)}) -> {f32(*shape)}", *shape
        )

    def broadcast(self, a: str, dims: tuple[int, ...], *shape: int) -> str:
        return self.emit(
            f"stablehlo.broadcast_in_dim {a}, dims = {list(dims)} : ({f32(*self.shapes[a])})"
            f" -> {f32(*shape)}",
            *shape,
        )

    def reduce(self, a: str, *dims: int) -> str:
        old = self.shapes[a]
        zero = self.emit("stablehlo.constant dense<0.0> : tensor<f32>")
        shape = tuple(n for d, n in enumerate(old) if d not in dims)
        return self.emit(
            f"stablehlo.reduce({a} init: {zero}) applies stablehlo.add across dimensions = "
            f"{list(dims)} : ({f32(*old)}, tensor<f32>) -> {f32(*shape)}",
            *shape,
        )

    def slice(self, a: str, dim: int, index: int) -> str:
        old = self.shapes[a]
        ranges = [f"{index}:{index + 1}" if d == dim else f"0:{n}" for d, n in enumerate(old)]
        shape = tuple(1 if d == dim else n for d, n in enumerate(old))
        return self.emit(
            f"stablehlo.slice {a} [{', '.join(ranges)}] : ({f32(*old)}) -> {f32(*shape)}", *shape
        )

    def done(self, **results: str) -> str:
        args = ", ".join(
            f'%a{i}: {f32(*shape)} loc("{name}")' for i, (name, shape) in enumerate(self.arguments)
        )
        types = [f32(*self.shapes[ssa]) for ssa in results.values()]
        infos = ", ".join(
            f'{t} {{jax.result_info = "result.{name.replace("__", ".")}"}}'
            for name, t in zip(results, types, strict=True)
        )
        body = "\n".join(self.lines)
        return (
            f"func.func @main({args}) -> ({infos}) {{\n{body}\n"
            f"  return {', '.join(results.values())} : {', '.join(types)}\n}}"
        )


@pytest.fixture
def columns(case):
    """`columns(text, size)`: (weight, dimension, rows) by name."""

    def find(text: str, size: int = 2) -> list[tuple[str, int, list[str]]]:
        c = case(text, model=size)
        names = [argument.name.removeprefix("params/") for argument in c.graph.arguments]
        structure = Structure(c.graph, find_roles(c.graph))
        return [
            (names[col.argument], col.dim, [names[row] for row in col.rows])
            for col in find_columns(structure, size)
        ]

    return find


def chain(layers: int) -> str:
    t = Text()
    x = t.arg("x", 16, 8)
    for i in range(layers):
        x = t.tanh(t.dot(x, t.arg(f"params/w{i}", 8, 8), con=((1,), (0,))))
    return t.done(y=x)


@pytest.mark.parametrize(
    ("layers", "pairs"),
    [
        (1, []),
        (2, [("w0", 1, ["w1"])]),
        (3, [("w0", 1, ["w1"])]),
        (4, [("w0", 1, ["w1"]), ("w2", 1, ["w3"])]),
        (5, [("w0", 1, ["w1"]), ("w2", 1, ["w3"])]),
    ],
)
def test_a_chain_of_products_is_taken_in_pairs(columns, layers: int, pairs):
    assert columns(chain(layers)) == pairs


def test_what_does_not_divide_is_no_column(columns):
    assert columns(chain(2), size=3) == []


def test_the_orientation_of_a_weight_does_not_matter(columns):
    t = Text()
    x, w1, w2 = t.arg("x", 16, 8), t.arg("params/w1", 12, 8), t.arg("params/w2", 8, 12)
    h = t.tanh(t.dot(w1, x, con=((1,), (1,))))  # [12, 16]
    y = t.dot(w2, h, con=((1,), (0,)))
    assert columns(t.done(y=y)) == [("w1", 0, ["w2"])]


def test_weights_are_seen_through_ops_that_change_shape(columns):
    t = Text()
    x, w1, w2 = t.arg("x", 16, 8), t.arg("params/w1", 4, 3, 8), t.arg("params/w2", 12, 8)
    flat = t.reshape(t.transpose(w1, 2, 0, 1), 8, 12)
    y = t.dot(t.tanh(t.dot(x, flat, con=((1,), (0,)))), w2, con=((1,), (0,)))
    assert columns(t.done(y=y)) == [("w1", 0, ["w2"])]  # the major of the merged dimensions


def test_a_gated_mlp_has_two_columns_and_one_row(columns):
    t = Text()
    x, up, gate = t.arg("x", 16, 8), t.arg("params/up", 8, 12), t.arg("params/gate", 8, 12)
    down = t.arg("params/down", 12, 8)
    a, b = t.dot(x, gate, con=((1,), (0,))), t.dot(x, up, con=((1,), (0,)))
    y = t.dot(t.mul(t.tanh(a), b), down, con=((1,), (0,)))
    assert columns(t.done(y=y)) == [("gate", 1, ["down"]), ("up", 1, ["down"])]


def test_a_norm_over_the_hidden_dimension_breaks_the_pair(columns):
    t = Text()
    x, w1, w2 = t.arg("x", 16, 8), t.arg("params/w1", 8, 12), t.arg("params/w2", 12, 8)
    h = t.dot(x, w1, con=((1,), (0,)))
    norm = t.broadcast(t.reduce(t.mul(h, h), 1), (0,), 16, 12)
    y = t.dot(t.mul(h, norm, "divide"), w2, con=((1,), (0,)))
    assert columns(t.done(y=y)) == []


def test_a_second_use_that_does_not_keep_the_dimension_breaks_the_pair(columns):
    t = Text()
    x, w1, w2 = t.arg("x", 16, 8), t.arg("params/w1", 8, 12), t.arg("params/w2", 12, 8)
    h = t.dot(x, w1, con=((1,), (0,)))
    y = t.dot(h, w2, con=((1,), (0,)))
    assert columns(t.done(y=y, total=t.reduce(h, 0, 1))) == []


def attention(t: Text, x: str, q: str, k: str, v: str, groups: int = 1) -> str:
    """(B, T, D) with weights (D, H, K); `groups` query heads share a key head. → (B, T, H, K)."""
    b, s, _ = t.shapes[x]
    heads, size = t.shapes[q][1:]
    kv = heads // groups
    qs, ks, vs = (t.dot(x, w, con=((2,), (0,))) for w in (q, k, v))
    qs = t.reshape(qs, b, s, kv, groups, size)
    scores = t.dot(qs, ks, con=((4,), (3,)), batch=((0, 2), (0, 2)))  # b n t g s
    weights = t.tanh(scores)
    total = t.broadcast(t.reduce(weights, 4), (0, 1, 2, 3), *t.shapes[weights])
    weights = t.mul(weights, total, "divide")
    mixed = t.dot(weights, vs, con=((4,), (1,)), batch=((0, 1), (0, 2)))  # b n t g k
    return t.reshape(t.transpose(mixed, 0, 2, 1, 3, 4), b, s, heads, size)


def test_attention_is_tiled_by_heads_and_never_inside_a_head(columns):
    t = Text()
    x = t.arg("x", 4, 6, 8)
    q, k, v = (t.arg(f"params/{n}", 8, 4, 6) for n in "qkv")
    o = t.arg("params/o", 4, 6, 8)
    y = t.dot(attention(t, x, q, k, v), o, con=((2, 3), (0, 1)))
    assert columns(t.done(y=y)) == [("q", 1, ["o"]), ("k", 1, ["o"]), ("v", 1, ["o"])]


def test_grouped_queries_leave_few_key_heads_to_inference(columns):
    """4 query heads, 2 key heads: on 2 devices all three are columns; on 4 only the queries, and
    values are not tiled inside a head, which the queries could not follow."""
    t = Text()
    x = t.arg("x", 4, 6, 8)
    q = t.arg("params/q", 8, 4, 8)
    k, v = (t.arg(f"params/{n}", 8, 2, 8) for n in "kv")
    o = t.arg("params/o", 4, 8, 8)
    y = t.dot(attention(t, x, q, k, v, groups=2), o, con=((2, 3), (0, 1)))
    text = t.done(y=y)
    assert columns(text, 2) == [("q", 1, ["o"]), ("k", 1, ["o"]), ("v", 1, ["o"])]
    assert columns(text, 4) == [("q", 1, ["o"])]


def test_fused_queries_keys_and_values_are_tiled_by_heads_not_by_three(columns):
    t = Text()
    x, w = t.arg("x", 4, 6, 8), t.arg("params/qkv", 8, 2, 4, 6)
    o = t.arg("params/o", 4, 6, 8)
    fused = t.dot(x, w, con=((2,), (0,)))
    q, v = (t.reshape(t.slice(fused, 2, i), 4, 6, 4, 6) for i in (0, 1))
    y = t.dot(t.mul(q, v), o, con=((2, 3), (0, 1)))
    assert columns(t.done(y=y)) == [("qkv", 2, ["o"])]


def test_experts_are_not_columns_but_their_hidden_dimension_is(columns):
    t = Text()
    x = t.arg("x", 4, 6, 8)  # expert, slot, feature
    up, down = t.arg("params/up", 4, 8, 10), t.arg("params/down", 4, 10, 8)
    h = t.dot(x, up, con=((2,), (1,)), batch=((0,), (0,)))
    y = t.dot(t.tanh(h), down, con=((2,), (1,)), batch=((0,), (0,)))
    assert columns(t.done(y=y)) == [("up", 2, ["down"])]


def training() -> str:
    """A two-layer step with gradients written out: the backward products look like pairs too."""
    t = Text()
    w1, w2 = t.arg("params/w1", 8, 12), t.arg("params/w2", 12, 8)
    x = t.arg("x", 16, 8)
    h = t.tanh(t.dot(x, w1, con=((1,), (0,))))
    y = t.dot(h, w2, con=((1,), (0,)))
    g2 = t.dot(h, y, con=((0,), (0,)))
    gh = t.dot(y, w2, con=((1,), (1,)))
    g1 = t.dot(x, t.mul(gh, h), con=((0,), (0,)))
    norm = t.broadcast(t.reduce(t.mul(g1, g1), 0, 1), (), 8, 12)
    return t.done(
        params__w1=t.mul(w1, t.mul(g1, norm), "subtract"),
        params__w2=t.mul(w2, g2, "subtract"),
        loss=t.reduce(y, 0, 1),
    )


def test_only_the_forward_computation_counts(columns):
    """The sum of squares over the gradient of w1 (clipping) reduces the tiled dimension, but is no
    part of the forward computation."""
    assert columns(training()) == [("w1", 1, ["w2"])]


def test_the_vocabulary(case):
    t = Text()
    w1, w2, head = t.arg("params/w1", 8, 12), t.arg("params/w2", 12, 8), t.arg("params/head", 8, 64)
    x = t.arg("x", 16, 8)
    h = t.dot(t.tanh(t.dot(x, w1, con=((1,), (0,)))), w2, con=((1,), (0,)))
    logits = t.dot(h, head, con=((1,), (0,)))
    c = case(t.done(logits=logits), model=2)
    structure = Structure(c.graph, find_roles(c.graph))
    names = [(c.graph.arguments[a].name, dim) for a, dim in vocabulary(structure)]
    assert names == [("params/head", 1)]
    assert [col.argument for col in find_columns(structure, 2)] == [0]


def test_a_table_that_is_looked_up_is_a_vocabulary(case):
    text = """
    func.func @main(%t: tensor<64x8xf32> loc("params['embed']"), %i: tensor<4x6xi32> loc("tokens"),
        %w: tensor<8x8xf32> loc("params['w']")) -> tensor<4x6x64xf32> {
      %e = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>,
        slice_sizes = array<i64: 1, 8>, indices_are_sorted = false}>
        : (tensor<64x8xf32>, tensor<4x6xi32>) -> tensor<4x6x8xf32>
      %h = stablehlo.dot_general %e, %w, contracting_dims = [2] x [0]
        : (tensor<4x6x8xf32>, tensor<8x8xf32>) -> tensor<4x6x8xf32>
      %y = stablehlo.dot_general %h, %t, contracting_dims = [2] x [1]
        : (tensor<4x6x8xf32>, tensor<64x8xf32>) -> tensor<4x6x64xf32>
      return %y : tensor<4x6x64xf32>
    }"""
    c = case(text, model=2)
    structure = Structure(c.graph, find_roles(c.graph))
    assert [(c.graph.arguments[a].name, dim) for a, dim in vocabulary(structure)] == [
        ("params/embed", 0)
    ]


def softmax(t: Text, x: str, dim: int) -> str:
    e = t.emit(f"stablehlo.exponential {x} : {f32(*t.shapes[x])}", *t.shapes[x])
    kept = tuple(d for d in range(len(t.shapes[x])) if d != dim)
    return t.mul(e, t.broadcast(t.reduce(e, dim), kept, *t.shapes[x]), "divide")


def test_attention_is_found_with_its_parts(case):
    """Keys are what the mixing contracts, whichever operand they are of the scores."""
    for keys_first in (False, True):
        t = Text()
        x, w = t.arg("x", 4, 6, 8), t.arg("params/w", 8, 8)
        q, k, v = t.tanh(x), t.dot(x, w, con=((2,), (0,))), t.mul(x, x)
        pair = (k, q) if keys_first else (q, k)
        scores = t.dot(*pair, con=((2,), (2,)), batch=((0,), (0,)))  # b, i, j
        weights = softmax(t, scores, 1 if keys_first else 2)
        y = t.dot(weights, v, con=((1,) if keys_first else (2,), (1,)), batch=((0,), (0,)))
        c = case(t.done(y=y), model=2)
        (found,) = attentions(Structure(c.graph, find_roles(c.graph)))
        kinds = [c.graph.kinds[c.graph.producer[u][0]] for u in (found.queries, found.keys)]
        assert kinds == ["stablehlo.tanh", "stablehlo.dot_general"]
        assert c.graph.kinds[c.graph.producer[found.values][0]] == "stablehlo.multiply"
        assert found.mixed == c.graph.outcomes[0].value


def test_products_of_activations_without_a_softmax_are_no_attention(case):
    t = Text()
    x = t.arg("x", 4, 6, 8)
    scores = t.dot(x, t.tanh(x), con=((2,), (2,)), batch=((0,), (0,)))
    y = t.dot(scores, x, con=((2,), (1,)), batch=((0,), (0,)))
    c = case(t.done(y=y), model=2)
    assert attentions(Structure(c.graph, find_roles(c.graph))) == ()


def test_experts_and_where_data_gets_to_them(case):
    t = Text()
    x, route = t.arg("x", 4, 6, 8), t.arg("route", 4, 6, 3)  # batch, token, feature / expert
    up, down = t.arg("params/up", 3, 8, 10), t.arg("params/down", 3, 10, 8)
    sent = t.dot(route, x, con=((1,), (1,)), batch=((0,), (0,)))  # b e d
    hidden = t.tanh(t.dot(sent, up, con=((2,), (1,)), batch=((1,), (0,))))  # e b f
    made = t.dot(hidden, down, con=((2,), (1,)), batch=((0,), (0,)))  # e b d
    back = t.dot(route, made, con=((2,), (0,)), batch=((0,), (1,)))  # b t d
    c = case(t.done(y=back), model=2)
    structure = Structure(c.graph, find_roles(c.graph))
    names = [(c.graph.arguments[a].name, dim) for a, dim in experts(structure)]
    assert names == [("params/up", 0), ("params/down", 0)]
    products = [op for op, kind in enumerate(c.graph.kinds) if kind == "stablehlo.dot_general"]
    sent_value, made_value = (c.graph.results[products[i]][0] for i in (0, 2))
    assert set(expert_borders(structure)) == {sent_value, made_value}


def test_why_a_weight_is_no_column(case):
    t = Text()
    x, w = t.arg("x", 16, 8), t.arg("params/w", 8, 12)
    y = t.dot(x, w, con=((1,), (0,)))
    c = case(t.done(y=y, total=t.reduce(y, 0, 1)), model=2)
    ((argument, dim, flow),) = obstacles(Structure(c.graph, find_roles(c.graph)), 2)
    assert (argument, dim) == (1, 1)
    assert flow.stopped_at is not None
    assert c.graph.kinds[flow.stopped_at] == "stablehlo.reduce"
    c = case(chain(2), model=3)
    (first, *_) = obstacles(Structure(c.graph, find_roles(c.graph)), 3)
    assert "8 does not divide by 3" in first[2].reason
