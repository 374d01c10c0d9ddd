"""What a script does to a session: actions, steps, warnings, faults, expectations."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partir.engine.session import Session
from partir.partir_dialect.errors import ExpectationError, TacticError
from partir.tactics import SearchRequest, Step, apply, check, load, parse, run, script_of
from partir.tactics import objects as o
from partir.tactics.world import World

TWO = """
func.func @main(%x: tensor<256x8xf32> loc("batch['x']"), %w1: tensor<8x16xf32> loc("params['w1']"),
    %w2: tensor<16x8xf32> loc("params['w2']")) -> (tensor<256x8xf32> {jax.result_info = "result"}) {
  %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
    : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    loc("jit(f)/first/dot_general"("m.py":1:1))
  %y = stablehlo.dot_general %h, %w2, contracting_dims = [1] x [0]
    : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
    loc("jit(f)/second/dot_general"("m.py":2:1))
  return %y : tensor<256x8xf32>
}
"""

V = "tensor<8xf32>"
M = "tensor<8x8xf32>"
STEP = f"""
func.func @main(%w: {M} loc("params['w']"), %b: {V} loc("params['b']"), 
    %m: {M} loc("opt['mu']['w']"),
    %n: {V} loc("opt['mu']['b']"), %t: tensor<i32> loc("opt['step']"), 
    %x: tensor<16x8xf32> loc("batch['x']"))
    -> ({M} {{jax.result_info = "result.params['w']"}},
        {V} {{jax.result_info = "result.params['b']"}},
        {M} {{jax.result_info = "result.opt['mu']['w']"}},
        {V} {{jax.result_info = "result.opt['mu']['b']"}},
        tensor<i32> {{jax.result_info = "result.opt['step']"}}) {{
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<16x8xf32>, {M}) -> tensor<16x8xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : ({V}) -> tensor<16x8xf32>
  %y = stablehlo.add %h, %bb : tensor<16x8xf32>
  %gw = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<16x8xf32>, tensor<16x8xf32>) -> {M}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %gb = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<16x8xf32>, tensor<f32>) -> {V}
  %m2 = stablehlo.add %m, %gw : {M}
  %n2 = stablehlo.add %n, %gb : {V}
  %w2 = stablehlo.subtract %w, %m2 : {M}
  %b2 = stablehlo.subtract %b, %n2 : {V}
  %one = stablehlo.constant dense<1> : tensor<i32>
  %t2 = stablehlo.add %t, %one : tensor<i32>
  return %w2, %b2, %m2, %n2, %t2 : {M}, {V}, {M}, {V}, tensor<i32>
}}
"""


@pytest.fixture
def two(case):
    return case(TWO, batch=4, model=2)


@pytest.fixture
def step(case):
    return case(STEP, batch=4, model=2)


def local(c, name: str) -> tuple[int, ...]:
    return c.session.local_shape(c.value(name))


def applied(c, text: str, **options) -> list[Step]:
    return apply(parse(text, "s.tactic"), c.session, **options)


def fault(c, text: str, **options) -> TacticError:
    with pytest.raises(TacticError) as caught:
        applied(c, text, **options)
    assert caught.value.span is not None
    return caught.value


# --- the example that must work by hand ---------------------------------------------------------


def test_data_parallel_megatron_zero3_in_this_order(two):
    steps = applied(
        two,
        """
        batch(axis=batch)
        expect collectives.count == 0
        megatron(axis=model)
        expect all_reduce.count == 1 and collectives.count == 1
        zero3(axis=batch)
        expect all_gather.count == 2 and all_reduce.count == 1 and collectives.count == 3
        """,
    )
    assert [s.tactic for s in steps] == [
        "batch(axis=batch)",
        "megatron(axis=model)",
        "zero3(axis=batch)",
    ]
    # as the design's table, but that zero3 takes the first dimension that divides
    assert local(two, "batch/x") == (64, 8)
    assert local(two, "params/w1") == (2, 8)
    assert local(two, "params/w2") == (2, 8)
    assert [a.text for a in steps[1].asked] == ["tile params/w1 dim=1 axis=model"]
    assert [(i.name, i.dim, i.axis) for i in steps[1].inferred] == [("params/w2", 0, "model")]
    assert [a.text for a in steps[2].asked] == [
        "tile params/w1 dim=0 axis=batch",
        "tile params/w2 dim=0 axis=batch",
    ]
    assert not any(s.warnings or s.conflicts for s in steps)
    two.verify()


def test_raw_tiles_do_the_same(two, case):
    raw = case(TWO, batch=4, model=2)
    applied(two, "batch(batch)\nmegatron(model)\nzero3(batch)")
    applied(
        raw,
        """
        tile x dim=0 axis=batch
        tile params/w1 dim=-1, axis=model
        for w in params { tile w dim=0 axis=batch }
        """,
    )
    assert raw.session.state.nests == two.session.state.nests
    assert raw.session.state.hash == two.session.state.hash


def test_one_statement_propagates_once(case):
    """All tiles in one statement: the first product has two ways to go, and nothing is decided."""
    c = case(TWO, batch=4, model=2)
    (step,) = applied(
        c,
        """
        tactic all() { tile w1 dim=0 axis=batch; tile x dim=0 axis=batch }
        all()
        """,
    )
    assert step.conflicts == 1
    assert len(step.done) == 2


def test_zero3_first_makes_the_first_product_a_sum_and_the_batch_is_refused(case):
    c = case(TWO, batch=4, model=2)
    zero, batch = applied(c, "zero3(axis=batch)\ntile x dim=0 axis=batch")
    assert [(i.name, i.dim) for i in zero.inferred] == [("batch/x", 1)]
    (warning,) = zero.warnings
    assert "captured 1 arguments beside the 2 it asked for (batch/x" in warning.message
    assert "write batch(axis=batch) before it" in warning.message
    (refused,) = batch.refused
    assert refused.reason.startswith("batch tiles dimension 1 of it, decided by zero3(axis=batch)")
    assert "s.tactic:1:1" in refused.reason
    (warning,) = batch.warnings
    assert warning.message.startswith("tile batch/x dim=0 axis=batch: refused:")
    assert warning.span.line == 2


def test_strict_makes_a_warning_a_fault(two):
    error = fault(two, "batch(axis=batch)\nbatch(axis=batch)", strict=True)
    assert error.exit_status == 2
    assert error.span.line == 2
    assert "already" in error.message


def test_what_changes_nothing_is_a_warning(two):
    *_, again = applied(two, "batch(batch)\ntile x dim=0 axis=batch")
    (warning,) = again.warnings
    assert "already: batch tiles dimension 0 already, decided by batch(batch)" in warning.message
    (step,) = applied(two, "megatron(axis=model, vocab=true)\n")
    assert not step.warnings
    nothing = """
    tactic nothing(axis) { if false { tile x dim=0 axis=axis } }
    nothing(axis=model)
    """
    (step,) = applied(two, nothing)
    assert [w.message for w in step.warnings] == ["changed nothing: nothing(axis=model)"]


# --- library --------------------------------------------------------------------------------------


def test_batch_takes_all_inputs_that_have_a_dimension(step):
    (s,) = applied(step, "batch(axis=batch)")
    assert [a.text for a in s.asked] == ["tile batch/x dim=0 axis=batch"]
    assert local(step, "batch/x") == (4, 8)


def test_batch_takes_named_inputs(two):
    (s,) = applied(two, 'batch(axis=batch, inputs=["x"])')
    assert [a.text for a in s.asked] == ["tile batch/x dim=0 axis=batch"]


def test_zero_takes_matrices_and_leaves_vectors(step):
    (s,) = applied(step, "zero2(axis=batch)")
    assert {a.name for a in s.asked} == {"opt/mu/w"}
    (s,) = applied(step, "zero1(axis=model, vectors=true)")
    assert {a.name for a in s.asked} == {"opt/mu/w", "opt/mu/b"}
    assert local(step, "opt/mu/w") == (1, 8)  # shares the dimension with the first axis
    assert local(step, "opt/mu/b") == (4,)


def test_zero2_after_batch_scatters_gradients_and_gathers_parameters(step):
    applied(step, "batch(batch)\nzero2(batch)")
    # w: gradient reduce_scattered, updated w gathered; b: gradient reduced whole
    assert step.counts() == {"reduce_scatter": 1, "all_gather": 1, "all_reduce": 1}
    assert local(step, "params/w") == (8, 8)
    step.verify()


def test_zero3_takes_a_parameter_and_its_state_on_one_dimension(step):
    _, zero = applied(step, "batch(batch)\nzero3(batch)")
    assert sorted(a.text for a in zero.asked) == [
        "tile opt/mu/w dim=0 axis=batch",
        "tile params/w dim=0 axis=batch",
    ]
    assert not zero.warnings
    assert step.counts() == {"reduce_scatter": 1, "all_gather": 1, "all_reduce": 1}
    step.verify()


def test_gathers_can_be_shared(step):
    """The parameter is used once forward here, and for its own update, which needs a part only."""
    (s,) = applied(step, "share params")
    assert [a.text for a in s.asked] == ["share params/w", "share params/b"]
    assert [a.status for a in s.asked] == ["done", "done"]
    (again,) = applied(step, "share params/w")
    assert again.asked[0].status == "already"


def test_zero_says_what_no_dimension_can_take(case):
    c = case(STEP, batch=3)
    (s,) = applied(c, "zero3(axis=batch)")
    assert not s.done
    assert len(s.refused) == 2
    assert "no dimension of its tile 8x8 divides by 3" in s.warnings[0].message


def test_megatron_finds_its_column(step, two):
    (s,) = applied(two, "megatron(axis=model)")
    assert [a.text for a in s.asked] == ["tile params/w1 dim=1 axis=model"]
    (s,) = applied(step, "megatron(axis=model)")  # one product alone is no pair
    assert s.asked == ()
    assert s.warnings[0].message == (
        "changed nothing: megatron(axis=model) (no pair of weights: dimension 1 of params/w ends: "
        "no other weight contracts it)"
    )


# --- faults ---------------------------------------------------------------------------------------


def test_a_batch_that_does_not_divide_is_padded(case):
    c = case(TWO, batch=3)
    (s,) = applied(c, "batch(axis=batch)")
    assert not s.warnings
    assert local(c, "batch/x") == (86, 8)


def test_a_size_that_can_be_neither_divided_nor_padded(case):
    c = case(TWO, batch=3, model=5)
    text = "batch(axis=batch)\n  tile x dim=0 axis=model"  # only the first axis may pad
    error = fault(c, text)
    assert (error.span.file, error.span.line, error.span.column) == ("s.tactic", 2, 3)
    assert "dimension 0 of batch/x (256x8) cannot be divided by model=5" in error.message


@pytest.mark.parametrize(
    ("text", "column", "message", "nearest"),
    [
        ('batch(axis=batch, inputs=["y"])', 27, "no argument or result is named 'y'", None),
        ('batch(axis=batch, inputs="params/w3")', 26, "is named 'params/w3'", "params/w2"),
        ("tile params/w1 dim=2 axis=model", 20, "params/w1 (8x16) has no dimension 2", None),
        ("tile params/w1 dim=1 axis=modle", 27, "no such name: 'modle'", "model"),
        ("tile params/w1 dim=half axis=model", 20, "no such name: 'half'", None),
        ("replicate params/w1 axis=[model, 3]", 1, "a mesh axis is wanted", None),
        ("zero5(axis=batch)", 1, "no such tactic: 'zero5'", "zero3"),
        ('stop op "frist" axis=batch', 9, "no named scope of an op is named 'frist'", "first"),
        ("stop result of dot_genral using w1 axis=batch", 16, "no op of the kind", "dot_general"),
        ("expect layers", 8, "true or false is wanted, got: the number 2", None),
        ("expect 1 / 0 == 1", 12, "division by zero", None),
        ("expect peak_memory < 1GiB", 8, "'peak_memory' is not measured", None),
        ("for a, b in params { }", 1, "each match has 1 parts, but 2 names", None),
        ("for w in params { tactic f() { } }", 26, "only allowed at the top", None),
        ("if params { }", 4, "true or false is wanted, got: the role 'params'", None),
        ("let x = rank(params)", 14, "one value is wanted, got 2", None),
        ("let x = shape(w1, 5)", 15, "no such name: 'w1'", None),
        ('let x = shape("w1", 5)', 9, "of rank 2 has no dimension 5", None),
        ("auto(axis=batch)", 1, "no searcher was given", None),
        ("microbatch(4)", 1, "microbatch is not supported by this version", None),
        ("pipeline(axis=model)", 1, "pipeline is not supported by this version", None),
    ],
)
def test_faults_are_located(two, text: str, column: int, message: str, nearest: str | None):
    error = fault(two, "# a line above\n" + text)
    assert message in error.message
    assert (error.span.file, error.span.line, error.span.column) == ("s.tactic", 2, column)
    if nearest is not None:
        assert error.nearest == nearest


def test_what_is_not_supported_checks_all_the_same(two):
    for text in ("microbatch(4)", "pipeline(axis=model, stages=4)", "auto(axis=batch, budget=1)"):
        check(parse(text), mesh=two.mesh)


def test_a_tactic_without_end_stops(two):
    error = fault(two, "tactic f() { f() }\nf()")
    assert "calls itself without end" in error.message


def test_a_fault_in_a_users_tactic_is_shown_where_it_is(two):
    error = fault(two, "tactic f(w) {\n  tile w dim=7 axis=model\n}\nf(w='w1')")
    assert (error.span.line, error.span.column) == (2, 14)


# --- the language at work -------------------------------------------------------------------------


def test_users_tactics_with_parameters_and_defaults(two):
    (s,) = applied(
        two,
        """
        let where = 1
        tactic columns(weights, axis=model, dim=where) { tile weights dim=dim axis=axis }
        columns(weights="params/*1")
        """,
    )
    assert [a.text for a in s.asked] == ["tile params/w1 dim=1 axis=model"]


def test_a_tactic_does_not_see_its_callers_names(two):
    error = fault(two, "tactic f() { tile x dim=d axis=batch }\ntactic g(d) { f() }\ng(0)")
    assert "no such name: 'd'" in error.message


def test_conditions_and_loops(two):
    (s,) = applied(
        two,
        """
        tactic shard(axis) {
          for w in "params/*", batch/x {
            if matches(w, "w2") { tile w dim=free_dim(w, axis) axis=axis }
            else if name_is_long and not tiled(w, axis) { tile w dim=0 axis=axis }
          }
        }
        let name_is_long = count("params/**") > 1 and rank("x") == 2 and bytes("x") == 256 * 8 * 4
        shard(axis=model)
        """.replace("}\n            else", "} else"),
    )
    assert [a.text for a in s.asked] == [
        "tile params/w1 dim=0 axis=model",
        "tile params/w2 dim=0 axis=model",
        "tile batch/x dim=0 axis=model",
    ]


def test_program_facts_and_axis_sizes(two):
    run_ = run(
        parse(
            """
            expect layers == 2 and params == 2 and parameters == 2 * 8 * 16 and devices == 8
            expect inputs == 1 and optimizer == 0 and batch * model == devices
            expect size(batch) == 4 and max(1, min(5, 3)) == 3 and ceil(2.5) == 3
            expect elements("w1") == 128 and dtype("w1") == "f32" and local("x", -2) == 256
            """
        ),
        two.session,
    )
    assert [e.held for e in run_.expectations] == [True] * 4


def test_named_ops(two):
    scoped, produced = applied(
        two,
        'stop op "first" axis=batch\nreplicate result of dot_general using w2 axis=model',
    )
    assert [a.value for a in scoped.asked] == [two.value("h")]
    assert [a.value for a in produced.asked] == [two.value("y")]
    assert scoped.asked[0].name == "first/dot_general:stablehlo.dot_general"


def test_stop_keeps_an_axis_from_passing(two, case):
    free = case(TWO, batch=4, model=2)
    applied(two, 'stop op "first" axis=batch\nbatch(batch)')
    applied(free, "batch(batch)")
    assert two.dims("h") == (("batch",), ())
    assert two.dims("y") == ((), ())
    assert free.dims("y") == (("batch",), ())


def test_imports_and_includes(two, tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.tactic").write_text(
        "let d = 0\ntactic mine(axis) { tile x dim=d axis=axis }\nmine(axis=model)\n"
    )
    (tmp_path / "all.tactic").write_text('import "lib/mine.tactic"\nmine(axis=batch)\n')
    (tmp_path / "twice.tactic").write_text('include "all.tactic"\nmegatron(axis=model)\n')
    steps = apply(load(str(tmp_path / "twice.tactic")), two.session)
    assert [s.tactic for s in steps] == ["mine(axis=batch)", "megatron(axis=model)"]
    assert steps[0].span.file == str(tmp_path / "all.tactic")
    (tmp_path / "loop.tactic").write_text('include "loop.tactic"\n')
    with pytest.raises(TacticError, match="asks for itself"):
        load(str(tmp_path / "loop.tactic"))
    with pytest.raises(TacticError, match="No such file") as caught:
        load(str(tmp_path / "absent.tactic"))
    assert caught.value.exit_status == 2


def test_python_objects_apply_like_text(two, case):
    other = case(TWO, batch=4, model=2)
    applied(two, "batch(axis=batch)\nmegatron(axis=model)\ntile params/w1 dim=0 axis=batch")
    apply(
        script_of([o.Batch("batch"), o.Megatron("model"), o.Tile("params/w1", 0, "batch")]),
        other.session,
    )
    assert other.session.state.hash == two.session.state.hash


# --- expectations ---------------------------------------------------------------------------------


def test_an_expectation_that_fails_says_by_how_much_and_who_is_to_blame(two):
    text = "megatron(axis=model)\nexpect all_reduce.count == 0, 'no sums'\n"
    with pytest.raises(ExpectationError) as caught:
        applied(two, text)
    error = caught.value
    assert error.exit_status == 1
    assert error.span.line == 2
    assert error.message.startswith("no sums: expected all_reduce.count == 0")
    assert "got 1 against 0" in error.message
    assert "1 all_reduce by megatron(axis=model)" in error.message
    assert "m.py:2:1" in error.message


def test_expectations_are_of_the_moment(two):
    run_ = run(
        parse(
            """
            expect argument_bytes == (256 * 8 + 8 * 16 + 16 * 8) * 4
            batch(batch)
            expect argument_bytes == (64 * 8 + 8 * 16 + 16 * 8) * 4 and all_reduce.count == 0
            megatron(model)
            expect all_reduce.count == 1 and all_reduce.bytes == 64 * 8 * 4
            expect all_reduce.ring_bytes == all_reduce.bytes * 2 * (model - 1) / model
            expect all_gather.count == 1
            """
        ),
        two.session,
    )
    assert [e.held for e in run_.expectations] == [True, True, True, True, False]
    assert len(run_.failed) == 1
    assert len(run_.steps) == 2


def test_collectives_by_scope_and_by_value(two):
    applied(
        two,
        """
        batch(batch)
        megatron(model)
        zero3(batch)
        expect collective_count("all_gather") == 2 and collective_count("collectives") == 3
        expect collective_count("all_gather", of="params/w1") == 1
        expect collective_bytes("all_gather", of=params) == (8 * 8 + 8 * 8) * 4
        expect collective_count("all_reduce", scope="second") == 1
        expect collective_count("all_reduce", scope="first") == 0
        expect collective_count("all_gather", scope="f*") == 1
        """,
    )
    error = fault(two, 'expect collective_count("all_reduces") == 0')
    assert error.nearest == "all_reduce"


def test_quantities_that_the_caller_measures(two):
    seen: list[int] = []

    def measure(session: Session) -> dict[str, float]:
        seen.append(len(session.statements))
        return {"peak_memory_bytes": 100.0, "estimated_time_s": 0.5}

    text = (
        "batch(batch)\nexpect peak_memory == 100B\nexpect estimated_time <= 500ms\nmegatron(model)"
    )
    applied(two, text, measure=measure)
    assert seen == [1]  # measured once for a state, only when asked for


# --- auto -----------------------------------------------------------------------------------------


class Fixed:
    """A searcher that always comes back with the same script."""

    def __init__(self) -> None:
        self.requests: list[SearchRequest] = []

    def search(self, session: Session, request: SearchRequest) -> str:
        self.requests.append(request)
        return "# found\nbatch(axis=batch)\nmegatron(axis=model)\n"


def test_auto_runs_what_the_searcher_finds(two, case):
    searcher = Fixed()
    text = 'auto(axis=[batch, model], goal="fit", budget=400, memory=1GiB, seed=7)'
    (s,) = applied(two, text, searcher=searcher)
    assert searcher.requests == [
        SearchRequest(("batch", "model"), "fit", 400, None, 7, 2**30),
    ]
    assert s.tactic == text
    assert s.found is not None and "megatron" in s.found
    other = case(TWO, batch=4, model=2)
    applied(other, "batch(axis=batch)\nmegatron(axis=model)")
    assert other.session.state.nests == two.session.state.nests
    assert not s.inferred or {i.name for i in s.inferred} == {"params/w2"}


def test_after_is_called_with_each_step(two):
    seen: list[str] = []
    applied(
        two,
        "batch(batch)\nexpect devices == 8\nmegatron(model)",
        after=lambda s: seen.append(s.tactic),
    )
    assert seen == ["batch(batch)", "megatron(model)"]


_STATEMENTS = (
    "batch(axis=batch)",
    "batch(axis=model)",
    "megatron(axis=model)",
    "megatron(axis=batch, vocab=true)",
    "embedding(axis=model)",
    "zero2(axis=batch, vectors=true)",
    "zero3(axis=batch)",
    "zero3(axis=model, once=true)",
    "sequence(axis=model, dim=0)",
    "context(axis=model)",
    "replicate_small(axis=batch, below=100)",
    "tile params dim=-1 axis=batch",
    "tile uses of params dim=0 axis=model",
    "replicate params axis=model",
    "stop inputs axis=batch",
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from((TWO, STEP)), st.lists(st.sampled_from(_STATEMENTS), max_size=5))
def test_any_schedule_computes_the_same(case, program: str, lines: list[str]):
    """Whatever is asked for in whatever order: warnings and conflicts, but never another number."""
    c = case(program, batch=2, model=2)
    steps = applied(c, "\n".join(lines))
    assert len(steps) == len(lines)
    for s in steps:
        assert all(a.status == "done" or a.reason for a in s.asked)
    c.verify()


# --- checking against a program -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ('batch(axis=batch, inputs="xs")', None),
        ('batch(axis=batch, inputs=["x", "params/w3"])', "params/w2"),
        ("tile params/w3 dim=0 axis=batch", "params/w2"),
        ('tile op "frist" dim=0 axis=batch', "first"),
        ("tile result of add using w1 dim=0 axis=batch", None),
    ],
)
def test_check_with_a_program_knows_its_names(two, text: str, nearest: str | None):
    check(parse(text), mesh=two.mesh)
    with pytest.raises(TacticError) as caught:
        check(parse(text), world=World(two.session))
    assert caught.value.span is not None
    if nearest is not None:
        assert caught.value.nearest == nearest
    assert two.session.statements == []
