"""Do the shardings of a program become its placements, exactly, and never a wrong number?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from partir.engine.check import check_plan
from partir.interp import run, run_spmd
from partir.partir_dialect.errors import MeshError, PartirError
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module, verify_module
from partir.partir_dialect.sdy import Sharding
from partir.passes.mhlo_sharding import Tiles, elements_of, parse_tiles, sharding_of_text
from partir.passes.sharding_forms import normalise_shardings
from partir.runtime.border import head, read_border
from partir.runtime.partition import Partitioned, partition
from partir.runtime.program import read_text

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'


def sharded(text: str, mesh: Mesh | None = None, **options: Any) -> Partitioned:
    """Partitions a program by its own shardings and compares every tile with the whole result."""
    result = partition(read_text(text, "test.mlir"), mesh, **options)
    check_plan(result.plan)
    module = result.program.module()
    random = np.random.default_rng(0)
    inputs = [
        random.integers(-8, 8, argument.shape).astype(argument.dtype.replace("i32", "int32"))
        if argument.dtype == "i32"
        else random.integers(-8, 8, argument.shape).astype(np.float32)
        for argument in result.program.arguments
    ]
    normalise_shardings(module, result.mesh, keep=False)
    wanted = run(module, inputs)
    spmd = read_module(result.spmd_text, "spmd")
    verify_module(spmd, result.spmd_text, "spmd")
    assert "sdy." not in result.spmd_text
    border = read_border(spmd, result.mesh)
    outputs = run_spmd(spmd, result.mesh, border.scatter(inputs))
    for k, edge in enumerate(border.results):
        for device in range(result.mesh.devices):
            tile = wanted[k][edge.index(device, border.mesh)]
            np.testing.assert_array_equal(head(outputs[device][k], tile.shape), tile)
    return result


def placements(result: Partitioned) -> dict[str, list[list[str]]]:
    return result.axes_of_dims()


def counts(result: Partitioned) -> dict[str, int]:
    return {kind: row["count"] for kind, row in result.plan.counts().items() if row["count"]}


def unary(argument: str, result: str, body: str = "") -> str:
    """A function of one argument, with shardings on both sides and perhaps a body."""
    body = body or "%y = stablehlo.negate %x : tensor<16x8xf32>"
    return (
        MESH
        + f"func.func @main(%x: tensor<16x8xf32> {argument}) -> (tensor<16x8xf32> {result}) {{\n"
        + f"  {body}\n  return %y : tensor<16x8xf32>\n}}\n"
    )


def on(dims: str, extra: str = "") -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}{extra}>}}"


# --- borders --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "placement"),
    [
        ('[{"x"}, {}]', [["x"], []]),
        ('[{"x", "y"}, {}]', [["x", "y"], []]),
        ('[{"y", "x"}, {}]', [["y", "x"], []]),
        ('[{"y":(1)2}, {"y":(2)2}]', [["y:(1)2"], ["y:(2)2"]]),
        ('[{"y":(2)2, "x"}, {"y":(1)2}]', [["y:(2)2", "x"], ["y:(1)2"]]),
        ("[{}, {}]", [[], []]),
    ],
)
def test_a_closed_sharding_is_taken_as_written(dims: str, placement: list[list[str]]) -> None:
    for text in (unary(on(dims), ""), unary("", on(dims)), unary(on(dims), on(dims))):
        result = sharded(text)
        found = placements(result)
        assert found["arg0"] == placement
        assert found["result/0"] == placement
        assert counts(result) == {}


def test_both_ends_are_as_written_whatever_lies_between() -> None:
    shardings = ['[{"x"}, {"y"}]', '[{"y"}, {"x"}]', '[{}, {"y", "x"}]', '[{"y", "x"}, {}]']
    for before, after in itertools.permutations(shardings, 2):
        found = placements(sharded(unary(on(before), on(after))))
        assert found["arg0"] != found["result/0"]


def test_open_dimensions_take_more_and_closed_ones_do_not() -> None:
    for opened, wanted in (("?", ["y"]), ("", [])):
        text = unary(on(f'[{{"x"}}, {{{opened}}}]'), on('[{"x"}, {"y"}]'))
        assert placements(sharded(text))["arg0"] == [["x"], wanted]


def test_replicated_axes_stay_out_of_open_dimensions() -> None:
    text = unary(on("[{?}, {?}]", ', replicated={"y"}'), on('[{"x"}, {"y"}]'))
    assert placements(sharded(text))["arg0"] == [["x"], []]


def test_uneven_tiles_at_the_border() -> None:
    text = (
        'sdy.mesh @mesh = <["x"=8]>\n'
        'func.func @main(%x: tensor<17x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) '
        "-> tensor<17x3xf32> {\n  return %x : tensor<17x3xf32>\n}\n"
    )
    result = sharded(text)
    assert result.plan.values[result.plan.arguments[0]].shape == (3, 3)


def test_an_inline_mesh() -> None:
    sharding = '{sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}]>}'
    text = f"func.func @main(%x: tensor<4xf32> {sharding}) -> tensor<4xf32> {{\n"
    result = sharded(text + "  return %x : tensor<4xf32>\n}\n")
    assert placements(result)["arg0"] == [["z"]]
    assert result.mesh == Mesh(z=2)


# --- inside ---------------------------------------------------------------------------------------

MATMUL = """
func.func @main(%a: tensor<16x8xf32> {A}, %b: tensor<8x12xf32> {B}) -> (tensor<16x12xf32> {R}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {O}
    : (tensor<16x8xf32>, tensor<8x12xf32>) -> tensor<16x12xf32>
  return %0 : tensor<16x12xf32>
}}
"""


def matmul(a: str = "", b: str = "", r: str = "", op: str = "") -> str:
    wish = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {op}>]>}}" if op else ""
    cut = [on(dims) if dims else "" for dims in (a, b, r)]
    text = MATMUL.replace("{A}", cut[0]).replace("{B}", cut[1]).replace("{R}", cut[2])
    return MESH + text.replace("{O}", wish).replace("{{", "{").replace("}}", "}")


def test_a_sum_is_finished_where_the_result_is_whole() -> None:
    result = sharded(matmul('[{}, {"y"}]', '[{"y"}, {}]', "[{}, {}]"))
    assert counts(result) == {"all_reduce": 1}


def test_a_sum_is_scattered_where_the_result_is_tiled() -> None:
    result = sharded(matmul('[{}, {"y"}]', '[{"y"}, {}]', '[{"y"}, {}]'))
    assert placements(result)["result/0"] == [["y"], []]


def test_the_sharding_of_an_op_decides_it() -> None:
    result = sharded(matmul(op='[{"x"}, {"y"}]'))
    assert placements(result) == {
        "arg0": [["x"], []],
        "arg1": [[], ["y"]],
        "result/0": [["x"], ["y"]],
    }


def test_priorities_are_the_order() -> None:
    """Both want axis y for the matmul: rows of a, or the summed dimension of b."""
    rows = sharded(matmul('[{"y"}, {?}]', '[{"y"}p1, {}]'))
    assert counts(rows) == {"all_gather": 1}
    assert placements(rows)["result/0"] == [["y"], []]
    sums = sharded(matmul('[{"y"}p1, {?}]', '[{"y"}, {}]'))
    assert placements(sums)["arg0"] == [["y"], []]
    assert counts(sums).get("all_reduce", 0) + counts(sums).get("reduce_scatter", 0) == 1


def test_a_constraint_moves_a_value() -> None:
    body = (
        '%c = sdy.sharding_constraint %x <@mesh, [{}, {"y"}]> : tensor<16x8xf32>\n'
        "  %y = stablehlo.tanh %c : tensor<16x8xf32>"
    )
    result = partition(read_text(unary(on('[{"y"}, {}]'), on('[{}, {"y"}]'), body)))
    assert counts(result) == {"all_to_all": 1}


@pytest.mark.parametrize(
    "op",
    [
        'sdy.reshard %x <@mesh, [{}, {"y"}]> : tensor<16x8xf32>',
        'sdy.all_to_all [{"y"}: 0->1] %x out_sharding=<@mesh, [{}, {"y"}]> : tensor<16x8xf32>',
    ],
)
def test_explicit_reshards_are_constraints(op: str) -> None:
    body = f"%c = {op}\n  %y = stablehlo.negate %c : tensor<16x8xf32>"
    result = sharded(unary(on('[{"y"}, {}]'), "", body))
    assert placements(result)["result/0"] == [[], ["y"]]
    assert counts(result) == {"all_to_all": 1}


def test_an_op_that_cannot_be_cut_says_so_and_its_result_is_cut() -> None:
    body = (
        '%z = "stablehlo.custom_call"(%x) {call_target_name = "unknown", '
        'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} '
        ": (tensor<16x8xf32>) -> tensor<16x8xf32>\n"
        "  %y = stablehlo.negate %z : tensor<16x8xf32>"
    )
    result = partition(read_text(unary("", "", body)))
    assert placements(result)["result/0"] == [["x"], []]
    assert any("stablehlo.custom_call" in note for note in result.notes)


def test_members_of_a_group_are_cut_alike() -> None:
    text = (
        MESH
        + "func.func @main(%a: tensor<16x8xf32> "
        + on('[{"x"}, {}]')
        + ", %b: tensor<16x8xf32>) -> "
        "(tensor<16x8xf32>, tensor<16x8xf32>) {\n"
        "  %2 = stablehlo.negate %a : tensor<16x8xf32>\n"
        "  %0 = stablehlo.negate %2 : tensor<16x8xf32>\n"
        "  %1 = stablehlo.negate %b : tensor<16x8xf32>\n"
        "  %3 = stablehlo.add %1, %1 : tensor<16x8xf32>\n"
        "  sdy.sharding_group %0 group_id = 3 : tensor<16x8xf32>\n"
        "  sdy.sharding_group %1 group_id = 3 : tensor<16x8xf32>\n"
        "  return %0, %3 : tensor<16x8xf32>, tensor<16x8xf32>\n}\n"
    )
    assert placements(sharded(text))["arg1"] == [["x"], []]


def test_a_barrier_stops_an_axis() -> None:
    body = (
        "%p = sdy.propagation_barrier %x allowed_direction = NONE : tensor<16x8xf32>\n"
        "  %y = stablehlo.negate %p : tensor<16x8xf32>"
    )
    assert placements(sharded(unary(on('[{"x"}, {}]'), "", body)))["result/0"] == [[], []]


def test_constraints_in_the_body_of_a_reduction_say_nothing() -> None:
    text = (
        MESH
        + "func.func @main(%x: tensor<16x8xf32> "
        + on('[{"x"}, {}]')
        + """) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%x init: %c) across dimensions = [0]
    : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
   reducer(%p: tensor<f32>, %q: tensor<f32>) {
    %r = stablehlo.add %p, %q : tensor<f32>
    %s = sdy.sharding_constraint %r <@mesh, []> : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }
  return %y : tensor<8xf32>
}
"""
    )
    assert counts(sharded(text)) == {"all_reduce": 1}


def test_shardings_of_functions_that_are_inlined() -> None:
    text = (
        MESH
        + "func.func private @inner(%p: tensor<16x8xf32> "
        + on('[{"x"}, {}]')
        + ") -> (tensor<16x8xf32> "
        + on('[{}, {"y"}]')
        + ") {\n  %0 = stablehlo.negate %p : tensor<16x8xf32>\n"
        "  return %0 : tensor<16x8xf32>\n}\n"
        "func.func @main(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {\n"
        "  %0 = call @inner(%x) : (tensor<16x8xf32>) -> tensor<16x8xf32>\n"
        "  return %0 : tensor<16x8xf32>\n}\n"
    )
    found = placements(sharded(text))
    assert found == {"arg0": [["x"], []], "result/0": [[], ["y"]]}


# --- manual computations --------------------------------------------------------------------------

MANUAL = """
func.func @main(%a: tensor<8x4xf32> {A}) -> tensor<4xf32> {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{{FREE}}}]>]
      out_shardings=[<@mesh, [{{}}]>] manual_axes={{"x"}} (%p: tensor<4x4xf32>) {{
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%p init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %s = "stablehlo.all_reduce"(%r) <{{
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<{GROUPS}> : tensor<4x2xi64>, use_global_device_ids}}> ({{
    ^bb0(%u: tensor<f32>, %v: tensor<f32>):
      %w = stablehlo.add %u, %v : tensor<f32>
      stablehlo.return %w : tensor<f32>
    }}) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %s : tensor<4xf32>
  }} : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""


@pytest.mark.parametrize("free", ["", '"y"'])
@pytest.mark.parametrize("argument", ["", '[{}, {"x"}]', '[{"y"}, {"x"}]'])
def test_a_manual_region_gets_what_its_border_says(argument: str, free: str) -> None:
    groups = [[k, k + 4] for k in range(4)]
    text = MESH + MANUAL.format(A=on(argument) if argument else "", FREE=free, GROUPS=groups)
    result = sharded(text)
    if argument:
        wanted = [["y"] if '"y"' in argument else [], ["x"]]
        assert placements(result)["arg0"] == wanted
    assert placements(result)["result/0"] == [[]]
    assert result.spmd_text.count("stablehlo.all_reduce") == 1


def test_a_region_inside_a_region() -> None:
    """JAX writes the number of a device along a manual axis like this."""
    text = (
        MESH
        + """func.func @main(%x: tensor<16x8xf32>) -> tensor<2xi32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x", ?}, {?}]>]
      out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%p: tensor<8x8xf32>) {
    %1 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"y"} () {
      %c = stablehlo.constant dense<4> : tensor<ui32>
      %d = stablehlo.partition_id : tensor<ui32>
      %e = stablehlo.divide %d, %c : tensor<ui32>
      %f = stablehlo.convert %e : (tensor<ui32>) -> tensor<i32>
      sdy.return %f : tensor<i32>
    } : () -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    sdy.return %2 : tensor<1xi32>
  } : (tensor<16x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
"""
    )
    result = sharded(text)
    assert placements(result)["result/0"] == [["x"]]


def test_a_manual_region_is_kept_when_there_are_tactics() -> None:
    groups = [[k, k + 4] for k in range(4)]
    text = MESH + MANUAL.format(A=on("[{}, {}]"), FREE="", GROUPS=groups)
    result = sharded(text, tactics=["tile arg0 dim=1 axis=y"])
    assert placements(result)["arg0"] == [["x"], ["y"]]
    assert any("left out" in note for note in result.notes)


# --- tactics, and the mesh ------------------------------------------------------------------------


def test_tactics_come_in_place_of_shardings_or_after_them() -> None:
    text = unary(on('[{"x"}, {?}]'), "")
    alone = sharded(text, tactics=["tile arg0 dim=1 axis=y"])
    assert placements(alone)["arg0"] == [[], ["y"]]
    after = sharded(text, tactics=["tile arg0 dim=1 axis=y"], own=True)
    assert placements(after)["arg0"] == [["x"], ["y"]]
    never = sharded(text, own=False)
    assert placements(never)["arg0"] == [[], []]


def test_a_closed_dimension_refuses_a_tactic() -> None:
    result = sharded(unary(on('[{"x"}, {}]'), ""), tactics=["tile arg0 dim=1 axis=y"], own=True)
    assert placements(result)["arg0"] == [["x"], []]
    assert any(step.warnings for step in result.steps)


def test_a_given_mesh_has_the_axes_of_the_program() -> None:
    text = unary(on('[{"x"}, {}]'), "")
    wider = sharded(text, Mesh(z=2, x=2, y=4))
    assert wider.mesh.devices == 16
    with pytest.raises(MeshError, match="got: x=4,y=4"):
        partition(read_text(text), Mesh(x=4, y=4))


def test_meshes_that_differ_are_refused() -> None:
    text = (
        'sdy.mesh @other = <["x"=4]>\n'
        + MESH
        + "func.func @main(%x: tensor<16xf32> "
        + on('[{"x"}]')
        + ") -> (tensor<16xf32> "
        '{sdy.sharding = #sdy.sharding<@other, [{"x"}]>}) {\n  return %x : tensor<16xf32>\n}\n'
    )
    with pytest.raises(MeshError, match="must be over one mesh"):
        partition(read_text(text))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ('[{"x", "y"}, {}]', "dimension 0 of size 6 cannot be cut in 8"),
        ('[{}, {"y"}]', "dimension 1 of size 1 cannot be cut in 4"),
    ],
)
def test_a_border_that_cannot_be_is_an_error_with_its_place(dims: str, message: str) -> None:
    text = (
        MESH + f"func.func @main(%x: tensor<6x1xf32> {on(dims)}) -> tensor<6x1xf32> {{\n"
        "  return %x : tensor<6x1xf32>\n}\n"
    )
    with pytest.raises(PartirError, match=message) as caught:
        partition(read_text(text, "border.mlir"))
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == ("border.mlir", 2)


def test_what_is_still_to_be_summed_is_refused() -> None:
    with pytest.raises(PartirError, match="still to be summed"):
        partition(read_text(unary(on("[{}, {}]", ', unreduced={"x"}'), "")))


# --- the other way --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        matmul('[{"x"}, {"y"}]', '[{"y"}, {}]', '[{"x"}, {}]'),
        matmul('[{"y":(1)2}, {}]', '[{}, {"x"}]'),
        unary(on('[{"y", "x"}, {}]'), on('[{}, {"x", "y"}]')),
    ],
)
def test_what_is_written_for_shardy_reads_back(text: str) -> None:
    first = sharded(text)
    again = sharded(first.emit("sdy"))
    assert placements(again) == placements(first)
    assert counts(again) == counts(first)


# --- the older spelling ---------------------------------------------------------------------------


def tile_of(sharding: Sharding, mesh: Mesh, device: int) -> tuple[int, ...]:
    """Which tile a device has, by the coordinates of the mesh."""
    found: list[int] = []
    for dim in sharding.dims:
        position = 0
        for axis in dim.axes:
            size, at = mesh.size(axis.name), mesh.coordinate(device, axis.name)
            if axis.size is not None and axis.before is not None:
                at = at // (size // (axis.before * axis.size)) % axis.size
                size = axis.size
            position = position * size + at
        found.append(position)
    return tuple(found)


@pytest.mark.parametrize("mesh", [Mesh(x=2, y=4), Mesh(a=8), Mesh(a=2, b=2, c=2)])
@pytest.mark.parametrize(
    "text",
    [
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        "{devices=[2,4]<=[8]}",
        "{devices=[4,2]<=[2,4]T(1,0)}",
        "{devices=[2,2,2]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}",
        "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dims={replicated}}",
        "{devices=[2,4]0,1,2,3,4,5,6,7}",
        "{devices=[4,2]0,4,1,5,2,6,3,7}",
    ],
)
def test_device_lists_become_axes(text: str, mesh: Mesh) -> None:
    sharding = sharding_of_text(text, 2, mesh, "mesh")
    assert sharding is not None
    tiles = parse_tiles(text)
    table = np.asarray(tiles.devices).reshape(tiles.dims)
    for index in np.ndindex(table.shape):
        assert tile_of(sharding, mesh, int(table[index])) == index[:2]


def test_device_lists_that_no_axes_make() -> None:
    with pytest.raises(PartirError, match="no axes of the mesh x=4"):
        sharding_of_text("{devices=[4]1,0,3,2}", 1, Mesh(x=4), "mesh")
    with pytest.raises(PartirError, match="one device only"):
        sharding_of_text("{maximal device=0}", 1, Mesh(x=4), "mesh")
    with pytest.raises(PartirError, match="do not fit"):
        parse_tiles("{devices=[2,2]<=[8]}")
    assert sharding_of_text("{manual}", 1, Mesh(x=4), "mesh") is None
    assert parse_tiles("{devices=[2]<=[2]}") == Tiles((2,), (0, 1))
    assert elements_of("{{replicated}, {devices=[2]<=[2]}}") == [
        "{replicated}",
        "{devices=[2]<=[2]}",
    ]


def test_the_older_spelling_partitions_over_a_given_mesh() -> None:
    text = (
        'func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> '
        '(tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) '
        'last_tile_dim_replicate}"}) {\n'
        '  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = '
        '"{replicated}"} : (tensor<16x8xf32>) -> tensor<16x8xf32>\n'
        "  %1 = stablehlo.negate %0 : tensor<16x8xf32>\n  return %1 : tensor<16x8xf32>\n}\n"
    )
    result = sharded(text, Mesh(x=2, y=4))
    assert placements(result) == {"arg0": [["x"], ["y"]], "result/0": [["y"], []]}
    with pytest.raises(MeshError, match="which mesh"):
        partition(read_text(text))
