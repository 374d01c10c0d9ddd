"""Does every device get its tile, and do the tiles make the whole again?"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partir.partir_dialect.errors import MeshError, MismatchError, PartirError
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.placement import Placement
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.sdy_values import AxisRef
from partir.runtime.border import (
    Border,
    Edge,
    parse_part,
    part_text,
    read_border,
    refine,
    rewrite_border,
)

MESH = Mesh(a=2, b=4)


def module(argument: str, result: str) -> str:
    return f"""func.func public @main(%x: tensor<4xf32> {{partir.border = "{argument}"}})
      -> (tensor<4xf32> {{partir.border = "{result}"}}) {{ return %x : tensor<4xf32> }}"""


@st.composite
def placed(draw: st.DrawFn) -> tuple[Mesh, Edge]:
    """A mesh and a value whose dimensions divide by the axes that tile them."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    mesh = Mesh([(f"a{n}", size) for n, size in enumerate(sizes)])
    rank = draw(st.integers(0, 3))
    axes = draw(st.permutations(mesh.names))
    dims: list[list[str]] = [[] for _ in range(rank)]
    for axis in axes:
        where = draw(st.integers(-1, rank - 1))
        if where >= 0:
            dims[where].append(axis)
    shape = tuple(prod(mesh.size(a) for a in dim) * draw(st.integers(1, 2)) for dim in dims)
    return mesh, Edge("x", shape, Placement(tuple(map(tuple, dims))))


@given(placed())
def test_gather_undoes_scatter(case: tuple[Mesh, Edge]) -> None:
    mesh, edge = case
    whole = np.arange(prod(edge.shape), dtype=np.float32).reshape(edge.shape)
    tiles = edge.scatter(whole, mesh)
    assert {tile.shape for tile in tiles} == {edge.placement.local_shape(edge.shape, mesh)}
    np.testing.assert_array_equal(edge.gather(tiles, mesh), whole)


def test_axes_tile_major_to_minor() -> None:
    whole = np.arange(8)
    for dims, tile_of in (
        (("a", "b"), lambda a, b: 4 * a + b),
        (("b", "a"), lambda a, b: 2 * b + a),
    ):
        tiles = Edge("x", (8,), Placement((dims,))).scatter(whole, MESH)
        for device, tile in enumerate(tiles):
            a, b = divmod(device, 4)
            assert tile.tolist() == [tile_of(a, b)]


def test_copies_that_differ_are_a_mismatch() -> None:
    edge = Edge("loss", (2,), Placement((("a",),)))
    tiles = edge.scatter(np.zeros(2), MESH)
    tiles[3] = tiles[3] + 1
    with pytest.raises(MismatchError, match="loss must be equal on devices 0 and 3"):
        edge.gather(tiles, MESH)


def test_a_value_of_another_shape_is_refused() -> None:
    with pytest.raises(PartirError, match=r"x must be of shape \[8\], got: \[4\]"):
        Edge("x", (8,), Placement(((),))).scatter(np.zeros(4), MESH)


@pytest.mark.parametrize("text", ["model", "model:(1)2", "model:(4)2"])
def test_parts_of_axes_are_written_and_read(text: str) -> None:
    assert part_text(parse_part(text)) == text


def test_a_mesh_is_cut_where_the_parts_cut_it() -> None:
    mesh, parts = refine(Mesh(a=2, b=8), [AxisRef("b", 1, 2), AxisRef("b", 4, 2), AxisRef("a")])
    assert mesh == Mesh([("a", 2), ("b.0", 2), ("b.1", 2), ("b.2", 2)])
    assert parts("b:(1)2") == ("b.0",)
    assert parts("b:(1)4") == ("b.0", "b.1")
    assert parts("b:(4)2") == ("b.2",)
    assert parts("b") == ("b.0", "b.1", "b.2")
    assert parts("a") == ("a",)


def test_a_mesh_without_parts_stays_as_it_is() -> None:
    mesh, parts = refine(Mesh(a=1, b=4), [AxisRef("b")])
    assert mesh == Mesh(a=1, b=4)
    assert parts("a") == ("a",) and parts("b") == ("b",)


@pytest.mark.parametrize("axes", [[AxisRef("b", 1, 3)], [AxisRef("b", 2, 8)]])
def test_a_part_that_is_none(axes: list[AxisRef]) -> None:
    with pytest.raises(PartirError, match="b=8 cannot be cut"):
        refine(Mesh(b=8), axes)


def test_a_border_is_read_off_a_module() -> None:
    text = module("w: 8x2xf32 [{b:(2)2,a}, {}]", "8xf32 [{b:(1)2}]")
    border = read_border(read_module(text), MESH)
    mesh = Mesh([("a", 2), ("b.0", 2), ("b.1", 2)])
    assert border == Border(
        mesh,
        (Edge("w", (8, 2), Placement((("b.1", "a"), ()))),),
        (Edge("", (8,), Placement((("b.0",),))),),
    )
    # devices are numbered over a, b: the major part of b is bit 1, its minor part bit 0
    whole = np.arange(8).repeat(2).reshape(8, 2)
    firsts = [int(tile[0][0, 0]) for tile in border.scatter([whole])]
    assert firsts == [4 * (d & 1) + 2 * (d >> 2) for d in range(8)]


def test_a_border_of_another_mesh() -> None:
    with pytest.raises(MeshError, match="no such mesh axis: 'b'"):
        read_border(read_module(module("8xf32 [{b}]", "8xf32 [{}]")), Mesh(a=2))


@pytest.mark.parametrize("text", ["8xf32", "8xf32 [{a}, {b}]", "[{a}]"])
def test_a_border_that_is_none(text: str) -> None:
    with pytest.raises(PartirError, match="a border"):
        read_border(read_module(module(text, "8xf32 [{}]")), MESH)


def test_a_module_without_a_border() -> None:
    text = (
        "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    with pytest.raises(PartirError, match=r"main lacks 'partir\.border'"):
        read_border(read_module(text), MESH)


def test_axes_can_be_renamed() -> None:
    parsed = read_module(module("w: 8xf32 [{b}]", "8xf32 [{}]"))
    rewrite_border(parsed, lambda p: Placement(tuple(tuple("c" for _ in d) for d in p.dims)))
    border = read_border(parsed, Mesh(c=2))
    assert border.arguments == (Edge("w", (8,), Placement((("c",),))),)
