"""Which StableHLO ops have a region that combines elements, or take elements by index?"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    SameVariadicOperandSize,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect

from .stablehlo_attrs import GatherAttr, ScatterAttr
from .stablehlo_base import (
    Flag,
    HloOp,
    Indices,
    Int,
    Integers,
    Sizes,
    Tensor,
    Value,
    boolean,
    element_of,
    hlo_op,
    int64,
    int_of,
    integers,
    same_shape,
    same_types,
    shape_of,
    tensor_of,
    types_text,
    values_of,
    with_shape,
)
from .stablehlo_checks import (
    PREDICATE,
    check_dim,
    check_dims,
    check_length,
    check_reducer,
    check_region,
    check_result,
    check_same_shapes,
    check_sizes_operand,
    constant_sizes,
    scalar,
    window_of,
)
from .stablehlo_control import ReturnOp
from .stablehlo_elementwise import (
    AddOp,
    AndOp,
    BinaryOp,
    CompareOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    OrOp,
    XorOp,
)
from .stablehlo_index_checks import check_scatter, gather_shape

COMBINERS: dict[str, type[BinaryOp]] = {
    "add": AddOp,
    "and": AndOp,
    "maximum": MaximumOp,
    "minimum": MinimumOp,
    "multiply": MultiplyOp,
    "or": OrOp,
    "xor": XorOp,
}
"""The ops that can be named as the body of a reduction, with or without `stablehlo.`."""


def combiner_region(combiner: str, element_type: Attribute) -> Region:
    """A region of two scalars that returns `combiner` of them: `add`, `maximum`, …

    Raises `KeyError` for a name that is not in `COMBINERS`.
    """
    scalar = TensorType(element_type, ())
    block = Block(arg_types=[scalar, scalar])
    lhs, rhs = block.args
    combined = COMBINERS[combiner.removeprefix("stablehlo.")](lhs, rhs)
    block.add_ops([combined, ReturnOp([combined.result])])
    return Region(block)


def combiner_of(region: Region) -> str | None:
    """The name of the one op that a body of two scalars consists of, or None.

    `add` for a body that returns the sum of its two arguments, in either order.
    """
    if len(region.blocks) != 1:
        return None
    block = region.blocks[0]
    first = block.first_op
    if first is None or first.next_op is not block.last_op or len(block.args) != 2:
        return None
    last = block.last_op
    if (
        last is None
        or last.name != "stablehlo.return"
        or tuple(last.operands) != tuple(first.results)
    ):
        return None
    if set(first.operands) != set(block.args) or len(first.operands) != 2:
        return None
    name = first.name.removeprefix("stablehlo.")
    return name if name in COMBINERS else None


def check_some(op: HloOp, inputs: Sequence[SSAValue]) -> None:
    """Fails unless there is an input."""
    if not inputs:
        op.fail("inputs must have at least 1 value, got: 0")


def reduced(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """The shape without these dimensions."""
    return tuple(size for dim, size in enumerate(shape) if dim not in dims)


def check_results(
    op: HloOp, results: Sequence[SSAValue], shape: Sequence[int], elements: Sequence[Attribute]
) -> None:
    """Fails unless the results have this shape and these element types."""
    check_length(op, "results", results, len(elements))
    for value, element in zip(results, elements, strict=True):
        check_result(op, value, shape, element)


@hlo_op
class ReduceOp(HloOp):
    """Combines the elements along some dimensions, beginning with the init values.

    `%r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : …`
    """

    name = "stablehlo.reduce"
    inputs = var_operand_def(Tensor)
    init_values = var_operand_def(Tensor)
    dimensions = prop_def(Integers)
    body = region_def()
    result = var_result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def __init__(
        self,
        inputs: Sequence[Value],
        init_values: Sequence[Value],
        dimensions: Sequence[int],
        body: str | Region,
    ) -> None:
        types = [tensor_of(value) for value in inputs]
        if isinstance(body, str):
            assert len(types) == 1, f"a named body combines one input, got: {len(types)}"
            body = combiner_region(body, types[0].element_type)
        super().__init__(
            operands=[inputs, init_values],
            result_types=[
                [
                    with_shape(t, [n for d, n in enumerate(t.get_shape()) if d not in dimensions])
                    for t in types
                ]
            ],
            properties={"dimensions": integers(dimensions)},
            regions=[body],
        )

    def verify_(self) -> None:
        check_some(self, self.inputs)
        check_same_shapes(self, self.inputs, "inputs")
        shape, dims = shape_of(self.inputs[0]), self.dimensions.get_values()
        check_dims(self, "dimensions", dims, len(shape))
        elements = check_reducer(
            self, self.body, self.inputs.types, self.init_values.types, reduced(shape, dims)
        )
        check_results(self, self.result, reduced(shape, dims), elements)


@hlo_op
class ReduceWindowOp(HloOp):
    """Combines the elements in a window that slides over the inputs.

    `%r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2>}> ({ … }) : …`
    """

    name = "stablehlo.reduce_window"
    inputs = var_operand_def(Tensor)
    init_values = var_operand_def(Tensor)
    window_dimensions = prop_def(Integers)
    window_strides = opt_prop_def(Integers)
    base_dilations = opt_prop_def(Integers)
    window_dilations = opt_prop_def(Integers)
    padding = opt_prop_def()
    body = region_def()
    result = var_result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def verify_(self) -> None:
        check_some(self, self.inputs)
        check_same_shapes(self, self.inputs, "inputs")
        shape, sizes = shape_of(self.inputs[0]), self.window_dimensions.get_values()
        check_length(self, "window_dimensions", sizes, len(shape))
        window = window_of(
            self,
            sizes,
            self.window_strides,
            self.padding,
            self.base_dilations,
            self.window_dilations,
        )
        elements = check_reducer(self, self.body, self.inputs.types, self.init_values.types, sizes)
        check_results(self, self.result, window.positions(shape), elements)


@hlo_op
class SelectAndScatterOp(HloOp):
    """Adds each source element where the window's `select` winner was (max-pool backward).

    `%r = "stablehlo.select_and_scatter"(%x, %source, %zero) <{…}> ({ … }, { … }) : …`
    """

    name = "stablehlo.select_and_scatter"
    operand = operand_def(Tensor)
    source = operand_def(Tensor)
    init_value = operand_def(Tensor)
    window_dimensions = opt_prop_def(Integers)
    window_strides = opt_prop_def(Integers)
    padding = opt_prop_def()
    select = region_def()
    scatter = region_def()
    result = result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        shape, element = shape_of(self.operand), element_of(self.operand)
        check_result(self, self.init_value, (), element_of(self.init_value), "init_value")
        one = scalar(element)
        check_region(self, "select", self.select, [one, one], [PREDICATE])
        elements = check_reducer(self, self.scatter, [self.source.type], [self.init_value.type])
        sizes = values_of(self.window_dimensions)
        check_length(self, "window_dimensions", sizes, len(shape))
        window = window_of(self, sizes, self.window_strides, self.padding)
        check_result(self, self.source, window.positions(shape), element, "source")
        check_result(self, self.result, shape, elements[0])


@hlo_op
class MapOp(HloOp):
    """Applies a region of scalars to each element.

    `%r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0>}> ({ … }) : …`
    """

    name = "stablehlo.map"
    inputs = var_operand_def(Tensor)
    dimensions = prop_def(Integers)
    computation = region_def()
    result = result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        check_some(self, self.inputs)
        check_same_shapes(self, [*self.inputs, self.result], "inputs and result")
        dims = self.dimensions.get_values()
        if tuple(dims) != tuple(range(len(shape_of(self.inputs[0])))):
            self.fail(f"dimensions must be all of the inputs' in order, got: {list(dims)}")
        takes = [scalar(element_of(value)) for value in self.inputs]
        check_region(
            self, "computation", self.computation, takes, [scalar(element_of(self.result))]
        )


@hlo_op
class SortOp(HloOp):
    """Sorts along a dimension, all inputs by one comparator.

    `%r = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({ … }) : …`
    """

    name = "stablehlo.sort"
    inputs = var_operand_def(Tensor)
    dimension = opt_prop_def(Int)
    is_stable = opt_prop_def(Flag)
    comparator = region_def()
    result = var_result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        inputs: Sequence[Value],
        dimension: int,
        comparator: Region | str = "LT",
        *,
        is_stable: bool = True,
    ) -> None:
        types = [tensor_of(value) for value in inputs]
        if isinstance(comparator, str):
            block = Block(arg_types=[with_shape(t, ()) for t in types for _ in range(2)])
            compare = CompareOp(block.args[0], block.args[1], comparator)
            block.add_ops([compare, ReturnOp([compare.result])])
            comparator = Region(block)
        super().__init__(
            operands=[inputs],
            result_types=[types],
            properties={"dimension": int64(dimension), "is_stable": boolean(is_stable)},
            regions=[comparator],
        )

    def verify_(self) -> None:
        check_some(self, self.inputs)
        check_same_shapes(self, self.inputs, "inputs")
        rank = len(shape_of(self.inputs[0]))
        dim = -1 if self.dimension is None else int_of(self.dimension)
        if not -rank <= dim < rank and not dim == rank == 0:
            self.fail(f"dimension must be in [{-rank}, {rank}), got: {dim}")
        takes = [scalar(element_of(value)) for value in self.inputs for _ in range(2)]
        check_region(self, "comparator", self.comparator, takes, [PREDICATE])
        if not same_types(self.inputs.types, self.result.types):
            self.fail(f"results must be of the inputs' types, got: {types_text(self.result.types)}")


def check_indices(op: HloOp, indices: SSAValue) -> None:
    """Fails unless the indices are integers."""
    if not isinstance(element_of(indices), (IntegerType, IndexType)):
        op.fail(f"indices must be integers, got: {indices.type}")


@hlo_op
class GatherOp(HloOp):
    """Takes slices of the operand from the places that the indices name (clamped inside).

    `%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<…>, …}> : …`
    """

    name = "stablehlo.gather"
    operand = operand_def(Tensor)
    start_indices = operand_def(Indices)
    dimension_numbers = prop_def(GatherAttr)
    slice_sizes = prop_def(Integers)
    indices_are_sorted = opt_prop_def(Flag)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Value,
        start_indices: Value,
        dimension_numbers: GatherAttr,
        slice_sizes: Sequence[int],
        result_type: Attribute,
        *,
        indices_are_sorted: bool = False,
    ) -> None:
        super().__init__(
            operands=[operand, start_indices],
            result_types=[result_type],
            properties={
                "dimension_numbers": dimension_numbers,
                "slice_sizes": integers(slice_sizes),
                "indices_are_sorted": boolean(indices_are_sorted),
            },
        )

    def verify_(self) -> None:
        sizes, operand = self.slice_sizes.get_values(), shape_of(self.operand)
        check_indices(self, self.start_indices)
        indices = shape_of(self.start_indices)
        wanted = gather_shape(self, operand, indices, sizes, self.dimension_numbers)
        check_result(self, self.result, wanted, element_of(self.operand))


@hlo_op
class DynamicGatherOp(HloOp):
    """A `gather` whose slice sizes are computed.

    `%r = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{…}> : …`
    """

    name = "stablehlo.dynamic_gather"
    operand = operand_def(Tensor)
    start_indices = operand_def(Indices)
    slice_sizes = operand_def(Sizes)
    dimension_numbers = prop_def(GatherAttr)
    indices_are_sorted = opt_prop_def(Flag)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        operand, sizes = shape_of(self.operand), constant_sizes(self.slice_sizes)
        check_indices(self, self.start_indices)
        check_sizes_operand(self, "slice_sizes", self.slice_sizes, len(operand))
        indices = shape_of(self.start_indices)
        wanted = gather_shape(self, operand, indices, sizes, self.dimension_numbers)
        check_result(self, self.result, wanted, element_of(self.operand))


@hlo_op
class TorchIndexSelectOp(HloOp):
    """PyTorch's `index_select`.

    `%r = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : …`
    """

    name = "stablehlo.torch_index_select"
    operand = operand_def(Tensor)
    index = operand_def(Tensor)
    dim = prop_def(Int)
    batch_dims = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        shape, index = shape_of(self.operand), shape_of(self.index)
        dim, batch = int_of(self.dim), int_of(self.batch_dims)
        check_indices(self, self.index)
        check_dim(self, "dim", dim, len(shape))
        check_dim(self, "batch_dims", batch, min(dim, len(index)) + 1)
        if not same_shape(shape[:batch], index[:batch]):
            self.fail(f"index must have the batch of {self.operand.type}, got: {self.index.type}")
        wanted = (*shape[:dim], *index[batch:], *shape[dim + 1 :])
        check_result(self, self.result, wanted, element_of(self.operand))


@hlo_op
class ScatterOp(HloOp):
    """The inputs with updates combined in at the places that the indices name.

    `%r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = …}> ({ … }) : …`
    """

    name = "stablehlo.scatter"
    inputs = var_operand_def(Tensor)
    scatter_indices = operand_def(Indices)
    updates = var_operand_def(Tensor)
    scatter_dimension_numbers = prop_def(ScatterAttr)
    indices_are_sorted = opt_prop_def(Flag)
    unique_indices = opt_prop_def(Flag)
    update_computation = region_def()
    result = var_result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def __init__(
        self,
        inputs: Sequence[Value],
        scatter_indices: Value,
        updates: Sequence[Value],
        dimension_numbers: ScatterAttr,
        body: str | Region,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        types = [tensor_of(SSAValue.get(value)) for value in inputs]
        if isinstance(body, str):
            assert len(types) == 1, f"a named body combines one input, got: {len(types)}"
            body = combiner_region(body, types[0].element_type)
        super().__init__(
            operands=[inputs, scatter_indices, updates],
            result_types=[types],
            properties={
                "scatter_dimension_numbers": dimension_numbers,
                "indices_are_sorted": boolean(indices_are_sorted),
                "unique_indices": boolean(unique_indices),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        check_some(self, self.inputs)
        check_indices(self, self.scatter_indices)
        check_same_shapes(self, self.inputs, "inputs")
        check_same_shapes(self, self.updates, "updates")
        shape = shape_of(self.inputs[0])
        indices, updates = shape_of(self.scatter_indices), shape_of(self.updates[0])
        check_scatter(self, shape, indices, updates, self.scatter_dimension_numbers)
        news = [scalar(element_of(value)) for value in self.updates]
        elements = check_reducer(self, self.update_computation, self.inputs.types, news)
        check_results(self, self.result, shape, elements)


REDUCTION_OPS: list[type[HloOp]] = [
    ReduceOp, ReduceWindowOp, SelectAndScatterOp, MapOp, SortOp, GatherOp, DynamicGatherOp,
    TorchIndexSelectOp, ScatterOp,
]  # fmt: skip
