"""Which StableHLO ops steer: loops, branches, calls out, tokens, tuples, random bits?"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TupleType, i1, i32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from .stablehlo_attrs import ChannelHandleAttr, RngAlgorithmAttr, RngDistributionAttr, TokenType
from .stablehlo_base import (
    Array,
    Flag,
    HloOp,
    Int32,
    Sizes,
    Tensor,
    Text,
    Value,
    boolean,
    element_of,
    hlo_op,
    int_of,
    is_true,
    kind_of,
    same_type,
    same_types,
    shape_of,
    types_text,
)
from .stablehlo_checks import (
    PREDICATE,
    bit_width,
    check_constant_shape,
    check_dim,
    check_region,
    check_result,
    check_sizes_operand,
)
from .stablehlo_elementwise import BITS, FLOATS, INTS, check_kind
from .stablehlo_outside_checks import (
    check_aliases,
    check_backend_config,
    check_call_layouts,
    check_channel,
    check_composite,
    check_layout,
    check_pairs,
    check_token_last,
)


@hlo_op
class ReturnOp(HloOp):
    """What a region gives.

    `stablehlo.return %a, %b : tensor<f32>, tensor<i1>`
    """

    name = "stablehlo.return"
    results_ = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, results: Sequence[Value]) -> None:
        super().__init__(operands=[results])


@hlo_op
class WhileOp(HloOp):
    """Applies the body to the carried values as long as the condition gives true.

    Both regions have the carried values as arguments.
    `%r:2 = stablehlo.while(%i = %zero, %x = %init) : … cond { … } do { … }`
    """

    name = "stablehlo.while"
    operand = var_operand_def()
    cond = region_def()
    body = region_def()
    result = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self, operand: Sequence[Value], cond: Region | None = None, body: Region | None = None
    ) -> None:
        types = [SSAValue.get(value).type for value in operand]
        super().__init__(
            operands=[operand],
            result_types=[types],
            regions=[
                Region(Block(arg_types=types)) if region is None else region
                for region in (cond, body)
            ],
        )

    def verify_(self) -> None:
        types = self.operand.types
        check_region(self, "cond", self.cond, types, [PREDICATE])
        check_region(self, "body", self.body, types, types)
        if not same_types(types, self.result.types):
            self.fail(
                f"results must be of the operands' types, got: {types_text(self.result.types)}"
            )


def check_branches(op: HloOp, branches: Sequence[Region], types: Sequence[Attribute]) -> None:
    """Fails unless every branch takes nothing and gives values of these types."""
    for index, branch in enumerate(branches):
        check_region(op, f"branch {index}", branch, [], types)


@hlo_op
class CaseOp(HloOp):
    """Runs the branch that the index names; the last one if there is no such branch.

    `%r = "stablehlo.case"(%i) ({ … }, { … }) : (tensor<i32>) -> tensor<8xf32>`
    """

    name = "stablehlo.case"
    index = operand_def(Tensor)
    branches = var_region_def()
    result = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self, index: Value, branches: Sequence[Region], result_types: Sequence[Attribute]
    ) -> None:
        super().__init__(operands=[index], result_types=[result_types], regions=[branches])

    def verify_(self) -> None:
        check_result(self, self.index, (), i32, "index")
        if not self.branches:
            self.fail("branches must be at least 1, got: 0")
        check_branches(self, self.branches, self.result.types)


@hlo_op
class IfOp(HloOp):
    """Runs the one branch or the other.

    `%r = "stablehlo.if"(%p) ({ … }, { … }) : (tensor<i1>) -> tensor<8xf32>`
    """

    name = "stablehlo.if"
    pred = operand_def(Tensor)
    true_branch = region_def()
    false_branch = region_def()
    result = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        pred: Value,
        true_branch: Region,
        false_branch: Region,
        result_types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[pred], result_types=[result_types], regions=[true_branch, false_branch]
        )

    def verify_(self) -> None:
        check_result(self, self.pred, (), i1, "pred")
        check_branches(self, (self.true_branch, self.false_branch), self.result.types)


@hlo_op
class OptimizationBarrierOp(HloOp):
    """Its operands; nothing is moved across it.

    `%r:2 = stablehlo.optimization_barrier %a, %b : tensor<f32>, tensor<f32>`
    """

    name = "stablehlo.optimization_barrier"
    operand = var_operand_def()
    result = var_result_def()
    traits = traits_def(Pure())

    def __init__(self, operand: Sequence[Value]) -> None:
        types = [SSAValue.get(value).type for value in operand]
        super().__init__(operands=[operand], result_types=[types])

    def verify_(self) -> None:
        if not same_types(self.operand.types, self.result.types):
            self.fail(
                f"results must be of the operands' types, got: {types_text(self.result.types)}"
            )


@hlo_op
class TupleOp(HloOp):
    """Values bound together.

    `%t = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<i1>>`
    """

    name = "stablehlo.tuple"
    val = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, val: Sequence[Value]) -> None:
        types = [SSAValue.get(value).type for value in val]
        super().__init__(operands=[val], result_types=[TupleType(types)])  # pyright: ignore

    def verify_(self) -> None:
        type_ = self.result.type
        if not isinstance(type_, TupleType) or not same_types(type_.types.data, self.val.types):
            self.fail(f"result must be the tuple of the operands, got: {type_}")


@hlo_op
class GetTupleElementOp(HloOp):
    """One value of a tuple.

    `%a = stablehlo.get_tuple_element %t[0] : (tuple<tensor<f32>, tensor<i1>>) -> tensor<f32>`
    """

    name = "stablehlo.get_tuple_element"
    operand = operand_def()
    index = prop_def(Int32)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, operand: Value, index: int) -> None:
        tuple_type = SSAValue.get(operand).type
        assert isinstance(tuple_type, TupleType), f"a tuple is needed, got: {tuple_type}"
        super().__init__(
            operands=[operand],
            result_types=[tuple_type.types.data[index]],
            properties={"index": IntegerAttr(index, i32)},
        )

    def verify_(self) -> None:
        type_, index = self.operand.type, int_of(self.index)
        if not isinstance(type_, TupleType):
            self.fail(f"operand must be a tuple, got: {type_}")
        check_dim(self, "index", index, len(type_.types.data))
        if not same_type(type_.types.data[index], self.result.type):
            self.fail(f"result must be of type {type_.types.data[index]}, got: {self.result.type}")


@hlo_op
class CustomCallOp(HloOp):
    """Calls something that the runtime knows by name.

    `%r = stablehlo.custom_call @Qr(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>`
    """

    name = "stablehlo.custom_call"
    inputs = var_operand_def()
    call_target_name = prop_def(Text)
    has_side_effect = opt_prop_def(Flag)
    backend_config = opt_prop_def()
    api_version = opt_prop_def(Int32)
    called_computations = opt_prop_def(Array)
    operand_layouts = opt_prop_def(Array)
    result_layouts = opt_prop_def(Array)
    output_operand_aliases = opt_prop_def(Array)
    result = var_result_def()

    def __init__(
        self,
        target: str,
        inputs: Sequence[Value],
        result_types: Sequence[Attribute],
        *,
        has_side_effect: bool = False,
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={
                "call_target_name": StringAttr(target),
                "has_side_effect": boolean(True) if has_side_effect else None,
            },
        )

    def verify_(self) -> None:
        operands, results = self.inputs.types, self.result.types
        check_call_layouts(self, (operands, self.operand_layouts), (results, self.result_layouts))
        check_aliases(self, self.output_operand_aliases, operands, results)
        version = 1 if self.api_version is None else int_of(self.api_version)
        check_backend_config(self, version, self.backend_config)


@hlo_op
class CompositeOp(HloOp):
    """An op made of others: a name and the function that says what it computes.

    `%r = stablehlo.composite "my.op" %x {decomposition = @f} : (tensor<f32>) -> tensor<f32>`
    """

    name = "stablehlo.composite"
    inputs = var_operand_def()
    composite_name = prop_def(Text, prop_name="name")
    composite_attributes = opt_prop_def()
    decomposition = prop_def()
    version = opt_prop_def(Int32)
    composite_regions = var_region_def()
    result = var_result_def()

    def verify_(self) -> None:
        name = self.composite_name.data
        check_composite(self, name, self.decomposition, self.inputs.types, self.result)


@hlo_op
class AfterAllOp(HloOp):
    """A token that comes after others.

    `%t = stablehlo.after_all %a, %b : !stablehlo.token`
    """

    name = "stablehlo.after_all"
    inputs = var_operand_def(TokenType)
    result = result_def(TokenType)
    traits = traits_def(Pure())

    def __init__(self, inputs: Sequence[Value]) -> None:
        super().__init__(operands=[inputs], result_types=[TokenType()])


@hlo_op
class CreateTokenOp(HloOp):
    """A token that comes after nothing (older than `after_all`).

    `%t = stablehlo.create_token : !stablehlo.token`
    """

    name = "stablehlo.create_token"
    output = result_def(TokenType)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[TokenType()])


@hlo_op
class InfeedOp(HloOp):
    """Values from the host; the last result is the token.

    `%r, %t = "stablehlo.infeed"(%token) <{infeed_config = ""}> : …`
    """

    name = "stablehlo.infeed"
    token = operand_def(TokenType)
    infeed_config = opt_prop_def(Text)
    layout = opt_prop_def(Array)
    result = var_result_def()

    def verify_(self) -> None:
        types = self.result.types
        check_token_last(self, types)
        check_layout(self, self.layout, len(types) - 1)


@hlo_op
class OutfeedOp(HloOp):
    """Values to the host.

    `%t = "stablehlo.outfeed"(%x, %token) <{outfeed_config = ""}> : …`
    """

    name = "stablehlo.outfeed"
    inputs = var_operand_def()
    token = operand_def(TokenType)
    outfeed_config = opt_prop_def(Text)
    result = result_def(TokenType)


@hlo_op
class SendOp(HloOp):
    """Values to a channel.

    `%t = "stablehlo.send"(%x, %token) <{channel_handle = …, is_host_transfer = true}> : …`
    """

    name = "stablehlo.send"
    inputs = var_operand_def()
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(Flag)
    source_target_pairs = opt_prop_def()
    result = result_def(TokenType)

    def verify_(self) -> None:
        check_channel(self, self.channel_handle, is_true(self.is_host_transfer), 2)
        check_pairs(self, self.source_target_pairs)


@hlo_op
class RecvOp(HloOp):
    """Values from a channel; the last result is the token.

    `%x, %t = "stablehlo.recv"(%token) <{channel_handle = …, is_host_transfer = true}> : …`
    """

    name = "stablehlo.recv"
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(Flag)
    source_target_pairs = opt_prop_def()
    result = var_result_def()

    def verify_(self) -> None:
        check_token_last(self, self.result.types)
        check_channel(self, self.channel_handle, is_true(self.is_host_transfer), 3)
        check_pairs(self, self.source_target_pairs)


@hlo_op
class RngOp(HloOp):
    """Random numbers of a distribution with two parameters; which ones is not defined.

    `%r = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : …`
    """

    name = "stablehlo.rng"
    a = operand_def(Tensor)
    b = operand_def(Tensor)
    shape = operand_def(Sizes)
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(Tensor)

    def verify_(self) -> None:
        for value in (self.a, self.b):
            check_kind(self, value, BITS | FLOATS)
            check_result(self, value, (), element_of(self.result), "a parameter")
        check_sizes_operand(self, "shape", self.shape, len(shape_of(self.result)))
        check_constant_shape(self, self.shape, self.result)
        if self.rng_distribution.data == "NORMAL":
            check_kind(self, self.result, FLOATS)


@hlo_op
class RngBitGeneratorOp(HloOp):
    """Random bits that depend on nothing but the state, and the next state.

    `%s, %r = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : …`
    """

    name = "stablehlo.rng_bit_generator"
    initial_state = operand_def(Tensor)
    rng_algorithm = prop_def(RngAlgorithmAttr)
    output_state = result_def(Tensor)
    output = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_kind(self, self.output, INTS | FLOATS)
        if not same_type(self.initial_state.type, self.output_state.type):
            self.fail(f"states must be of {self.initial_state.type}, got: {self.output_state.type}")
        shape, element = shape_of(self.initial_state), element_of(self.initial_state)
        if len(shape) != 1 or kind_of(element) not in ("int", "uint"):
            self.fail(f"the state must be a list of integers, got: {self.initial_state.type}")
        bits, algorithm = shape[0] * bit_width(element), self.rng_algorithm.data
        allowed = {"THREE_FRY": (128,), "PHILOX": (128, 192)}.get(algorithm)
        if allowed and shape[0] >= 0 and bits not in allowed:
            self.fail(f"the state of {algorithm} must have {allowed[0]} bits, got: {bits}")


CONTROL_OPS: list[type[HloOp]] = [
    ReturnOp, WhileOp, CaseOp, IfOp, OptimizationBarrierOp, TupleOp, GetTupleElementOp,
    CustomCallOp, CompositeOp, AfterAllOp, CreateTokenOp, InfeedOp, OutfeedOp, SendOp, RecvOp,
    RngOp, RngBitGeneratorOp,
]  # fmt: skip
