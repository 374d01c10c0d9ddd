"""Propagation: the example by hand, and each of the eight rules by the example that breaks
without."""

from __future__ import annotations

import random

import pytest

CHAIN = """
func.func @main(%x: tensor<256x8xf32> loc("x"), %w1: tensor<8x16xf32> loc("w1"),
                %w2: tensor<16x8xf32> loc("w2")) -> tensor<256x8xf32> {
  %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
    : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
  %y = stablehlo.dot_general %h, %w2, contracting_dims = [1] x [0]
    : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
  return %y : tensor<256x8xf32>
}
"""


def local(c, name):
    return c.session.local_shape(c.value(name))


def test_the_example_by_hand(case):
    c = case(CHAIN, batch=4, model=2)
    c.step(("x", 0, "batch"))
    assert (local(c, "x"), local(c, "w1"), local(c, "w2")) == ((64, 8), (8, 16), (16, 8))
    assert c.counts() == {}
    c.step(("w1", 1, "model"))
    assert (local(c, "x"), local(c, "w1"), local(c, "w2")) == ((64, 8), (8, 8), (8, 8))
    (reduce,) = [r for r in c.session.plan().reshards if r.kind != "all_slice"]
    assert (reduce.kind, reduce.bytes) == ("all_reduce", 64 * 8 * 4)
    c.step(("w1", 0, "batch"), ("w2", 1, "batch"))
    assert (local(c, "x"), local(c, "w1"), local(c, "w2")) == ((64, 8), (2, 8), (8, 2))
    assert c.counts() == {"all_gather": 2, "all_reduce": 1}
    c.verify()


def test_zero3_first_refuses_batch_later_and_says_why(case):
    c = case(CHAIN, batch=4, model=2)
    c.session.begin("zero3(axis=batch)", "s.tactic:1:1")
    assert c.session.tile(c.value("w1"), 0, "batch").done
    c.session.propagate()
    assert c.dims("x") == ((), ("batch",))
    c.session.begin("batch(axis=batch)")
    outcome = c.session.tile(c.value("x"), 0, "batch")
    assert outcome.status == "refused"
    assert "dimension 1" in outcome.reason and "zero3(axis=batch) (s.tactic:1:1)" in outcome.reason


def test_all_tiles_in_one_tactic_are_a_conflict(case):
    c = case(CHAIN, batch=4, model=2)
    c.session.begin("all at once")
    for name, dim in (("x", 0), ("w1", 0), ("w2", 1)):
        assert c.session.tile(c.value(name), dim, "batch").done
    found = c.session.propagate()
    first = c.graph.producer[c.value("h")][0]
    assert first in [conflict.op for conflict in found.conflicts]
    (conflict,) = [k for k in found.conflicts if k.op == first]
    assert {evidence.value for evidence in conflict.evidence} >= {c.value("x"), c.value("w1")}
    c.verify()


def shuffled(module, rng):
    """The ops of main in another topological order."""
    block = next(iter(module.body.block.ops)).body.block
    ops = list(block.ops)
    *body, terminator = ops
    place = {op: i for i, op in enumerate(body)}
    waits = {op: {v.owner for v in op.operands if v.owner in place} for op in body}
    order = []
    ready = [op for op in body if not waits[op]]
    while ready:
        op = ready.pop(rng.randrange(len(ready)))
        order.append(op)
        for other in body:
            if op in waits[other]:
                waits[other].discard(op)
                if not waits[other]:
                    ready.append(other)
    for op in body:
        block.detach_op(op)
    for op in order:
        block.insert_op_before(op, terminator)


TRAIN = """
func.func @main(%x: tensor<8x4xf32> loc("x"), %w: tensor<4x8xf32> loc("w"),
                %v: tensor<8x4xf32> loc("v"), %b: tensor<8xf32> loc("b"))
    -> (tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %q = stablehlo.add %p, %bb : tensor<8x8xf32>
  %h = stablehlo.tanh %q : tensor<8x8xf32>
  %y = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = stablehlo.add %y, %x : tensor<8x4xf32>
  %d = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
    : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %u = stablehlo.subtract %w, %d : tensor<4x8xf32>
  %s = stablehlo.multiply %v, %v : tensor<8x4xf32>
  %l = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %r, %u, %l : tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>
}
"""
SCRIPT = [
    [("x", 0, "batch")],
    [("w", 1, "model")],
    [("v", 1, "batch")],
]


def outcome_of(c):
    for tiles in SCRIPT:
        c.step(*tiles)
    names = ["x", "w", "v", "b", "p", "q", "h", "y", "r", "d", "u", "s"]
    return {name: c.dims(name) for name in names}, c.counts()


@pytest.mark.parametrize("seed", range(8))
def test_rule_1_every_topological_order_has_one_outcome(case, seed):
    expected = outcome_of(case(TRAIN, batch=4, model=2))
    c = case(TRAIN, batch=4, model=2)
    shuffled(c.source.module, random.Random(seed))
    from partir.engine.build import build
    from partir.engine.session import Session

    c.graph, c.source = build(c.source.module)
    c.session = Session(c.graph, c.mesh)
    assert outcome_of(c) == expected


@pytest.mark.parametrize("seed", range(8))
def test_rule_1_identity_ops_change_nothing(case, seed):
    from partir.engine.build import build
    from partir.engine.session import Session
    from partir.partir_dialect.stablehlo import ConvertOp

    expected = outcome_of(case(TRAIN, batch=4, model=2))
    c = case(TRAIN, batch=4, model=2)
    rng = random.Random(seed)
    block = c.source.function.body.block
    values = [*block.args, *(r for op in list(block.ops)[:-1] for r in op.results)]
    for value in values:
        if rng.random() < 0.6:
            uses = [use for use in value.uses if rng.random() < 0.7]
            copy = ConvertOp.create(operands=[value], result_types=[value.type])
            if hasattr(value.owner, "results"):
                block.insert_op_after(copy, value.owner)
            else:
                block.insert_op_before(copy, block.first_op)
            for use in uses:
                use.operation.operands[use.index] = copy.results[0]
    c.graph, c.source = build(c.source.module)
    c.session = Session(c.graph, c.mesh)
    assert outcome_of(c) == expected


ONE_HOT = """
func.func @main(%t: tensor<8xi32> loc("t"), %w1: tensor<16x4xf32> loc("w1"),
                %w2: tensor<16x4xf32> loc("w2")) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %i = stablehlo.iota dim = 1 : tensor<8x16xi32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<8xi32>) -> tensor<8x16xi32>
  %eq = stablehlo.compare EQ, %tb, %i, SIGNED
    : (tensor<8x16xi32>, tensor<8x16xi32>) -> tensor<8x16xi1>
  %o = stablehlo.convert %eq : (tensor<8x16xi1>) -> tensor<8x16xf32>
  %a = stablehlo.dot_general %o, %w1, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %b = stablehlo.dot_general %o, %w2, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %a, %b : tensor<8x4xf32>, tensor<8x4xf32>
}
"""


def test_rule_2_generated_dimensions_decide_but_do_not_tell(case):
    c = case(ONE_HOT, model=4)
    c.step(("w1", 0, "model"))
    assert c.dims("o") == ((), ("model",))  # the one-hot takes its consumer's factor
    assert c.dims("w2") == ((), ())  # and does not hand it on
    c.verify()


@pytest.mark.parametrize(
    "scalar", ["stablehlo.constant dense<0.9> : tensor<f32>", "stablehlo.sqrt %s : tensor<f32>"]
)
def test_rule_2_a_shared_scalar_is_cloned_for_users_that_disagree(case, scalar):
    """A constant, or as in Adam's bias correction a scalar that is computed."""
    c = case(
        """
func.func @main(%a: tensor<8x8xf32> loc("a"), %b: tensor<8x8xf32> loc("b"),
                %s: tensor<f32> loc("s")) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %k = SCALAR
  %kb = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %x = stablehlo.multiply %a, %kb : tensor<8x8xf32>
  %y = stablehlo.multiply %b, %kb : tensor<8x8xf32>
  return %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
}
""".replace("SCALAR", scalar),
        model=4,
    )
    c.step(("a", 0, "model"), ("b", 1, "model"))
    assert not c.session.open_conflicts()
    assert (c.dims("x"), c.dims("y")) == ((("model",), ()), ((), ("model",)))
    assert c.counts() == {}
    c.verify()


def test_rule_3_a_decided_whole_use_vetoes_inference_onto_an_argument(case):
    c = case(
        """
func.func @main(%x: tensor<8x4xf32> loc("x"), %w: tensor<4x8xf32> loc("w"),
                %u: tensor<4x8xf32> loc("u")) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %s = stablehlo.add %w, %u : tensor<4x8xf32>
  return %y, %s : tensor<8x8xf32>, tensor<4x8xf32>
}
""",
        batch=4,
    )
    c.step(("x", 0, "batch"))
    c.step(("u", 0, "batch"))
    assert c.dims("s") == (("batch",), ())
    assert c.dims("w") == ((), ())
    assert c.counts() == {}  # w is whole, its slice is free
    c.verify()


def test_rule_3_another_use_does_not_stop_inference(case):
    c = case(TRAIN, batch=4, model=2)
    c.step(("w", 1, "model"))
    assert c.dims("v") == (("model",), ())  # although sum(v * v) takes v as well


ZERO2 = """
func.func @main(%x: tensor<8x4xf32> loc("batch['x']"),
                %p: tensor<4x8xf32> {tf.aliasing_output = 0 : i32} loc("params['w']"),
                %m: tensor<4x8xf32> {tf.aliasing_output = 1 : i32} loc("opt['m']['w']"))
    -> (tensor<4x8xf32> {jax.result_info = "result[0]['w']"}, tensor<4x8xf32>) {
  %y = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %m1 = stablehlo.add %m, %g : tensor<4x8xf32>
  %p1 = stablehlo.subtract %p, %m1 : tensor<4x8xf32>
  return %p1, %m1 : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


def test_rule_4_an_aliased_pair_is_one_op(case):
    c = case(ZERO2, batch=4)
    c.step(("batch/x", 0, "batch"))
    c.step(("opt/m/w", 0, "batch"))
    plan = c.session.plan()
    assert [plan.placement(v).dims for v in plan.results] == [((), ()), (("batch",), ())]
    assert c.counts() == {"reduce_scatter": 1, "all_gather": 1}
    c.verify()


def test_rule_5_replicate_makes_an_intermediate_whole(case):
    c = case(CHAIN, batch=4, model=2)
    c.session.begin("replicate")
    assert c.session.replicate(c.value("h"), "model").done
    c.step(("w1", 1, "model"))
    assert c.dims("w2") == ((), ())
    assert c.counts() == {"all_gather": 1}
    c.verify()


def test_rule_5_stop_lets_two_placements_meet_in_an_all_to_all(case):
    c = case(
        """
func.func @main(%x: tensor<8x8xf32> loc("x"), %e: tensor<8x8xf32> loc("e")) -> tensor<8x8xf32> {
  %h = stablehlo.tanh %x : tensor<8x8xf32>
  %y = stablehlo.multiply %h, %e : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
""",
        batch=4,
    )
    c.session.begin("stop")
    assert c.session.stop(c.value("h"), "batch").done
    c.step(("x", 0, "batch"), ("e", 1, "batch"))
    assert (c.dims("h"), c.dims("y")) == ((("batch",), ()), ((), ("batch",)))
    assert c.counts() == {"all_to_all": 1}
    c.verify()


HEADS = """
func.func @main(%x: tensor<4x8xf32> loc("x"), %k: tensor<4x2xf32> loc("k"))
    -> tensor<4x2x4xf32> {
  %q = stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
  %kb = stablehlo.broadcast_in_dim %k, dims = [0, 1] : (tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %y = stablehlo.multiply %q, %kb : tensor<4x2x4xf32>
  return %y : tensor<4x2x4xf32>
}
"""


def test_rule_6_two_heads_on_four_devices_split_the_axis(case):
    c = case(HEADS, model=4)
    c.step(("x", 1, "model"))
    assert c.session.state.mesh.axes == (("model.0", 2), ("model.1", 2))
    assert c.dims("q") == ((), ("model.0",), ("model.1",))
    assert c.dims("k") == ((), ("model.0",))
    assert c.counts() == {}
    c.verify()


def test_rule_6_products_fill_major_to_minor(case):
    c = case(HEADS, a=2, b=2)
    c.step(("x", 1, "a"))
    c.step(("x", 1, "b"))
    assert c.dims("x") == ((), ("a", "b"))
    assert c.dims("q") == ((), ("a",), ("b",))
    c.verify()


EDGES = """
func.func @main(%nodes: tensor<12x3xf32> loc("nodes"), %edges: tensor<8x3xf32> loc("edges"),
                %s: tensor<8x1xi32> loc("s"), %z: tensor<12x3xf32> loc("z")) -> tensor<12x3xf32> {
  %g = "stablehlo.gather"(%nodes, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 3>}>
    : (tensor<12x3xf32>, tensor<8x1xi32>) -> tensor<8x3xf32>
  %m = stablehlo.multiply %g, %edges : tensor<8x3xf32>
  %r = "stablehlo.scatter"(%z, %s, %m) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
  }) : (tensor<12x3xf32>, tensor<8x1xi32>, tensor<8x3xf32>) -> tensor<12x3xf32>
  return %r : tensor<12x3xf32>
}
"""


def test_rule_7_edges_beat_nodes_at_a_gather_and_a_scatter(case):
    """Tiled nodes alone are a masked sum; with tiled indices beside them the edges are taken, and
    the nodes are gathered."""
    c = case(EDGES, a=4)
    c.step(("nodes", 0, "a"))
    assert (c.dims("g"), c.counts()) == (((), ()), {"all_reduce": 1})
    c.verify()
    c = case(EDGES, a=4)
    assert c.step(("nodes", 0, "a"), ("s", 0, "a"), ("z", 0, "a")) == ["done"] * 3
    assert (c.dims("g"), c.dims("edges")) == ((("a",), ()), (("a",), ()))
    assert c.counts() == {"all_gather": 2, "all_reduce": 1}  # nodes, z; the sum over the edges
    assert c.session.open_conflicts() == []
    c.verify()


def test_undo_restores_the_state_and_its_hash(case):
    c = case(TRAIN, batch=4, model=2)
    c.step(("x", 0, "batch"))
    state = c.session.state
    before = (state.hash, list(state.nests), [list(t) for t in state.tile])
    mark = state.mark()
    c.session.replicate(c.value("h"), "model")
    c.step(("w", 1, "model"))
    assert state.hash != before[0]
    state.undo(mark)
    assert (state.hash, list(state.nests), [list(t) for t in state.tile]) == before
