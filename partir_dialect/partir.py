"""The `partir` dialect: how a partitioned program is written before and after it is lowered.

The loop form (`loop`, `slice`, `embed`, `once`, `yield`) says what a nest means and can be run; the
collectives of a device-local program are in `partir_spmd`, the attributes in `partir_attributes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr as Anything,
)
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .partir_attributes import (
    REDUCE_ACTIONS,
    Action,
    AnyAttr,
    MeshAttr,
    NestAttr,
    RangeType,
    ReduceAction,
    TileAttr,
    check_reducer,
)
from .partir_spmd import SPMD_OPS
from .partir_types import (
    Tensor,
    axis_size,
    check_axes,
    check_dim,
    mesh_of,
    tensor,
    tiled_type,
)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a loop and names what each iteration makes.

    ```mlir
    partir.yield %d : tensor<64x16xf32>
    ```
    """

    name = "partir.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), LoopOp):
            raise VerifyException("a yield ends the body of a partir.loop")


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Runs its body once for each position along a mesh axis and joins what the iterations make.

    There is one action for each result: `#partir.tile<d>` concatenates the iterations along d,
    `#partir.sum` (or max, min, mul, and, or) combines them, `#partir.any` says that they agree. A
    tile is ceil(size / iterations); padding is at the tail and is dropped.

    ```mlir
    %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
      %t = stablehlo.tanh %xs : tensor<64x8xf32>
      partir.yield %t : tensor<64x8xf32>
    } : tensor<256x8xf32>
    ```
    """

    name = "partir.loop"
    axis = prop_def(StringAttr)
    actions = prop_def(ArrayAttr)
    body = region_def("single_block")
    res = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        axis: str,
        actions: Sequence[Action],
        result_types: Sequence[Attribute],
        body: Region | int,
    ) -> None:
        """`body` is the region, or the number of iterations: then the body is an empty block with
        its index as argument."""
        region = Region(Block(arg_types=[RangeType(body)])) if isinstance(body, int) else body
        super().__init__(
            properties={"axis": StringAttr(axis), "actions": ArrayAttr(actions)},
            result_types=[result_types],
            regions=[region],
        )

    @property
    def axis_name(self) -> str:
        return self.axis.data

    @property
    def action_list(self) -> tuple[Action, ...]:
        """The actions, one for each result."""
        return cast(tuple[Action, ...], self.actions.data)

    @property
    def index(self) -> BlockArgument:
        """The index of the iteration, a `!partir.range`."""
        return self.body.block.args[0]

    @property
    def size(self) -> int:
        """How many iterations there are."""
        type_ = self.index.type
        assert isinstance(type_, RangeType)
        return type_.size.data

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """What an iteration makes, one value for each result."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        axis = parser.parse_str_literal(" for the axis of a loop")
        actions = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: cast(Action, parser.parse_attribute())
        )
        parser.parse_punctuation("(")
        index = parser.parse_argument()
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region((index,))
        parser.parse_punctuation(":")
        types = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_type, parser.parse_type
        )
        loop = cls(axis, actions, types or (), body)
        loop.attributes |= attributes.data if attributes else {}
        return loop

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.axis.data)
        printer.print_string(" ")
        printer.print_attribute(self.actions)
        printer.print_string(" (")
        printer.print_ssa_value(self.index)
        printer.print_string(" : ")
        printer.print_attribute(self.index.type)
        printer.print_string(")")
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_string(" : ")
        printer.print_list(self.result_types, printer.print_attribute)

    def verify_(self) -> None:
        self._verify_axis()
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("the body of a loop ends with partir.yield")
        if not self.res or not len(self.actions) == len(self.res) == len(last.values):
            raise VerifyException(
                "a loop has as many actions as results and yielded values, and at least one, got: "
                f"{len(self.actions)} actions, {len(self.res)} results, {len(last.values)} yielded"
            )
        differ = _dependent(self)
        for action, value, result in zip(self.actions.data, last.values, self.res, strict=True):
            _check_types(action, tensor(value.type), tensor(result.type), self.size)
            _check_dependence(action, value in differ)

    def _verify_axis(self) -> None:
        args = self.body.block.args
        if len(args) != 1 or not isinstance(args[0].type, RangeType):
            got = ", ".join(str(arg.type) for arg in args)
            raise VerifyException(f"the body of a loop takes one !partir.range, got: ({got})")
        mesh = mesh_of(self)
        if mesh is not None and axis_size(mesh, self.axis.data) != self.size:
            raise VerifyException(
                f"the range of a loop is the size of its axis, {self.axis.data}="
                f"{mesh.size(self.axis.data)}, got: {self.size}"
            )
        if any(loop.axis == self.axis for loop in enclosing_loops(self)):
            raise VerifyException(f"an axis never nests in itself, got: {self.axis.data}")


def enclosing_loops(op: Operation) -> Iterator[LoopOp]:
    """The loops around `op`, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, LoopOp):
            yield parent
        parent = parent.parent_op()


def _dependent(loop: LoopOp) -> set[SSAValue]:
    """The values of the body that differ between iterations."""
    differ: set[SSAValue] = {loop.index}
    _spread(loop.body.block, differ)
    return differ


def _spread(block: Block, differ: set[SSAValue]) -> None:
    """Adds what is made from values that differ; result by result where that is known."""
    for op in block.ops:
        if isinstance(op, LoopOp):
            _spread(op.body.block, differ)
            made = zip(op.res, op.yielded, strict=True)
            differ.update(result for result, value in made if value in differ)
        elif op.name == "stablehlo.optimization_barrier":
            pairs = zip(op.results, op.operands, strict=True)
            differ.update(result for result, operand in pairs if operand in differ)
        elif any(operand in differ for inner in op.walk() for operand in inner.operands):
            differ.update(op.results)


def _check_types(action: Attribute, inner: Tensor, outer: Tensor, size: int) -> None:
    if isinstance(action, TileAttr):
        check_dim(outer, action.dim, "a tile of")
        wanted = tiled_type(outer, action.dim, size)
    elif isinstance(action, ReduceAction | AnyAttr):
        wanted = outer
    else:
        raise VerifyException(f"an action is a tile, a reduction or any, got: {action}")
    if inner != wanted:
        raise VerifyException(
            f"{action} over {size} iterations makes {outer} of {wanted}, "
            f"but the body yields: {inner}"
        )


def _check_dependence(action: Attribute, differs: bool) -> None:
    if isinstance(action, AnyAttr) and differs:
        raise VerifyException(
            f"the iterations must agree for {action}, but the value depends on them"
        )
    if isinstance(action, ReduceAction) and not differs:
        raise VerifyException(
            f"{action} combines partial results, but all iterations make the same"
        )


def _loop_of(index: SSAValue) -> LoopOp:
    """The loop that `index` counts; raises `VerifyException` if it counts none."""
    loop = index.owner.parent_op() if isinstance(index.owner, Block) else None
    if not isinstance(loop, LoopOp) or not isinstance(index.type, RangeType):
        raise VerifyException(f"the index must be the range of a partir.loop, got: {index.type}")
    return loop


class IndexedOp(IRDLOperation):
    """An op on a source value and the index of a loop around it."""

    source = operand_def()
    index = operand_def(RangeType)
    result = result_def()

    @property
    def loop(self) -> LoopOp:
        """The loop whose index this op reads; raises `VerifyException` if there is none."""
        return _loop_of(self.index)

    def _print_tail(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string("[")
        printer.print_ssa_value(self.index)
        printer.print_string("]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


def _parse_known(parser: Parser) -> SSAValue:
    """A value that is defined already, so that its type need not be written."""
    name = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(name.operand_name, ())
    if name.index >= len(values):
        parser.raise_error(f"undefined value, got: %{name.operand_name}", name.span)
    return values[name.index]


def _parse_tail(parser: Parser) -> tuple[SSAValue, SSAValue, dict[str, Attribute], Attribute]:
    source = _parse_known(parser)
    parser.parse_punctuation("[")
    index = _parse_known(parser)
    parser.parse_punctuation("]")
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return source, index, attributes, parser.parse_type()


@irdl_op_definition
class SliceOp(IndexedOp):
    """The tile of the source that an iteration works on: the one at `index` along a dimension.

    ```mlir
    %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
    ```
    """

    name = "partir.slice"
    dimension = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, dim: int, index: SSAValue, result_type: Attribute | None = None
    ) -> None:
        """The result type is derived unless it is given."""
        if result_type is None:
            result_type = tiled_type(tensor(source.type), dim, _loop_of(index).size)
        super().__init__(
            operands=[source, index],
            properties={"dimension": IntegerAttr(dim, i64)},
            result_types=[result_type],
        )

    @property
    def dim(self) -> int:
        return self.dimension.value.data

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
        source, index, attributes, type_ = _parse_tail(parser)
        op = cls(source, dim, index, type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dim}")
        self._print_tail(printer)

    def verify_(self) -> None:
        source, loop = tensor(self.source.type), self.loop
        check_dim(source, self.dim, "a slice of")
        wanted = tiled_type(source, self.dim, loop.size)
        if self.result.type != wanted:
            raise VerifyException(
                f"one of {loop.size} slices of {source} along dimension {self.dim} is {wanted}, "
                f"got: {self.result.type}"
            )


@irdl_op_definition
class EmbedOp(IndexedOp):
    """The tile of an iteration at its place in the whole, among identity elements of a reducer.

    It is how an op meets a tile of a dimension that it indexes at run time: a gather from the
    embedded tile finds the rows that the tile holds, and zeros for the others.

    ```mlir
    %whole = partir.embed "add" 0 %tile[%i] : tensor<256x8xf32>
    ```
    """

    name = "partir.embed"
    reducer = prop_def(StringAttr)
    dimension = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, reducer: str, dim: int, index: SSAValue, result_type: Attribute
    ) -> None:
        super().__init__(
            operands=[source, index],
            properties={"reducer": StringAttr(reducer), "dimension": IntegerAttr(dim, i64)},
            result_types=[result_type],
        )

    @property
    def dim(self) -> int:
        return self.dimension.value.data

    @classmethod
    def parse(cls, parser: Parser) -> EmbedOp:
        reducer = parser.parse_str_literal(" for a reducer")
        dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
        source, index, attributes, type_ = _parse_tail(parser)
        op = cls(source, reducer, dim, index, type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.reducer.data)
        printer.print_string(f" {self.dim}")
        self._print_tail(printer)

    def verify_(self) -> None:
        check_reducer(self.reducer.data)
        result, loop = tensor(self.result.type), self.loop
        check_dim(result, self.dim, "an embedding in")
        wanted = tiled_type(result, self.dim, loop.size)
        if self.source.type != wanted:
            raise VerifyException(
                f"{result} is made of {loop.size} tiles {wanted} along dimension {self.dim}, "
                f"got: {self.source.type}"
            )


@irdl_op_definition
class OnceOp(IndexedOp):
    """The source in the first iteration, the identity element of a reducer in all others.

    It is how partial results that all start from one value count it once: the initial value of a
    reduce, the operand of a scatter.

    ```mlir
    %start = partir.once "add" %init[%i] : tensor<f32>
    ```
    """

    name = "partir.once"
    reducer = prop_def(StringAttr)
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, reducer: str, index: SSAValue, result_type: Attribute | None = None
    ) -> None:
        """The result type is that of the source unless it is given."""
        super().__init__(
            operands=[source, index],
            properties={"reducer": StringAttr(reducer)},
            result_types=[result_type or source.type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> OnceOp:
        reducer = parser.parse_str_literal(" for a reducer")
        source, index, attributes, type_ = _parse_tail(parser)
        op = cls(source, reducer, index, type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.reducer.data)
        self._print_tail(printer)

    def verify_(self) -> None:
        check_reducer(self.reducer.data)
        _ = self.loop
        if self.source.type != self.result.type:
            raise VerifyException(
                f"once keeps the type {self.source.type}, got: {self.result.type}"
            )


class _MarkOp(IRDLOperation):
    """An identity op that tells propagation something about its value."""

    T: ClassVar = VarConstraint("T", Anything())
    axes = prop_def(ArrayAttr[StringAttr])
    source = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$axes $source attr-dict `:` type($source)"

    def __init__(self, source: SSAValue, axes: Sequence[str]) -> None:
        super().__init__(
            operands=[source],
            properties={"axes": ArrayAttr([StringAttr(axis) for axis in axes])},
            result_types=[source.type],
        )

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(axis.data for axis in self.axes)

    def verify_(self) -> None:
        if not self.axes:
            raise VerifyException(f"{self.name} names at least one axis")
        check_axes(self.axis_names, mesh_of(self))


@irdl_op_definition
class ReplicateOp(_MarkOp):
    """The value is whole along these axes: every device, or every iteration, has all of it.

    ```mlir
    %k1 = partir.replicate ["model"] %k : tensor<64x16xf32>
    ```
    """

    name = "partir.replicate"


@irdl_op_definition
class StopOp(_MarkOp):
    """These axes do not propagate across this point, in either direction.

    ```mlir
    %d1 = partir.stop ["batch"] %dispatched : tensor<64x16xf32>
    ```
    """

    name = "partir.stop"


Partir = Dialect(
    "partir",
    [LoopOp, SliceOp, EmbedOp, OnceOp, YieldOp, ReplicateOp, StopOp, *SPMD_OPS],
    [MeshAttr, NestAttr, RangeType, TileAttr, AnyAttr, *REDUCE_ACTIONS.values()],
)
