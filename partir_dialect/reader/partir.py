"""Which pretty forms does the partir dialect have? Those that its ops parse and print themselves.

The types of most operands are not written: they are those of the values that the names mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from .operations import Argument, Draft
from .pretty import PrettyReader
from .values import Use


def _types_of(reader: PrettyReader, uses: Sequence[Use]) -> list[Attribute]:
    """The types of values that are defined already."""
    types: list[Attribute] = []
    for name, at in uses:
        values = reader.scope.values
        value = values.get(name) or values.get(name.removesuffix("#0"))
        if value is None:
            known = [known for known in values if "#" not in known][-500:]
            reader.fail(f"undefined value, got: {name}", at, name=name, candidates=known)
        types.append(value.type)
    return types


def _names(reader: PrettyReader) -> ArrayAttr[StringAttr]:
    """`["batch", "model"]`."""
    reader.expect("[")
    return ArrayAttr([StringAttr(name) for name in reader.comma_list("]", reader.string)])


def _name_lists(reader: PrettyReader) -> ArrayAttr[ArrayAttr[StringAttr]]:
    """`[["batch"], []]`."""
    reader.expect("[")
    return ArrayAttr(reader.comma_list("]", lambda: _names(reader)))


def _comma_types(reader: PrettyReader) -> list[Attribute]:
    types = [reader.type_()]
    while reader.accept(","):
        types.append(reader.type_())
    return types


def loop(reader: PrettyReader, draft: Draft) -> None:
    """`loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) attributes {…} { … } : t, …`."""
    draft.properties["axis"] = StringAttr(reader.string())
    reader.expect("[", "before the actions of a loop")
    draft.properties["actions"] = ArrayAttr(reader.comma_list("]", reader.attribute))
    reader.expect("(", "before the index of a loop")
    index: Argument = reader.block_argument()
    reader.expect(")")
    if reader.accept_word("attributes"):
        draft.attributes = reader.dictionary()
    draft.regions = [reader.region([index])]
    reader.expect(":", "before the types of a loop")
    draft.result_types = _comma_types(reader)


def yield_(reader: PrettyReader, draft: Draft) -> None:
    """`yield %d : t`."""
    reader.attribute_dictionary(draft)
    draft.operands = reader.uses()
    if draft.operands:
        reader.expect(":")
        draft.operand_types = _comma_types(reader)


def _indexed(reader: PrettyReader, draft: Draft) -> None:
    """`%x[%i] {…} : t`."""
    source = reader.use()
    reader.expect("[", "before the index of a loop")
    index = reader.use()
    reader.expect("]")
    draft.operands = [source, index]
    draft.operand_types = _types_of(reader, draft.operands)
    reader.attribute_dictionary(draft)
    reader.expect(":")
    draft.result_types = [reader.type_()]


def slice_(reader: PrettyReader, draft: Draft) -> None:
    """`slice 0 %x[%i] : t`."""
    draft.properties["dimension"] = IntegerAttr(reader.integer(), i64)
    _indexed(reader, draft)


def embed(reader: PrettyReader, draft: Draft) -> None:
    """`embed "add" 0 %x[%i] : t`."""
    draft.properties["reducer"] = StringAttr(reader.string())
    slice_(reader, draft)


def once(reader: PrettyReader, draft: Draft) -> None:
    """`once "add" %x[%i] : t`."""
    draft.properties["reducer"] = StringAttr(reader.string())
    _indexed(reader, draft)


def _same(reader: PrettyReader, draft: Draft) -> None:
    """`{…} : t`, the type of the only operand and of the result."""
    reader.attribute_dictionary(draft)
    reader.expect(":")
    draft.operand_types = draft.result_types = [reader.type_()]


def _change(reader: PrettyReader, draft: Draft) -> None:
    """`{…} : t -> t`."""
    reader.attribute_dictionary(draft)
    reader.expect(":")
    draft.operand_types = [reader.type_()]
    reader.expect("->")
    draft.result_types = [reader.type_()]


def mark(reader: PrettyReader, draft: Draft) -> None:
    """`stop ["batch"] %x : t`."""
    draft.properties["axes"] = _names(reader)
    draft.operands = [reader.use()]
    _same(reader, draft)


def regroup(reader: PrettyReader, draft: Draft) -> None:
    """`all_slice %x [["batch"], []] : t -> t`."""
    draft.operands = [reader.use()]
    draft.properties["axes"] = _name_lists(reader)
    _change(reader, draft)


def all_reduce(reader: PrettyReader, draft: Draft) -> None:
    """`all_reduce "add" ["model"] %x : t`."""
    draft.properties["reducer"] = StringAttr(reader.string())
    mark(reader, draft)


def reduce_scatter(reader: PrettyReader, draft: Draft) -> None:
    """`reduce_scatter "add" [["batch"], []] %x : t -> t`."""
    draft.properties["reducer"] = StringAttr(reader.string())
    draft.properties["axes"] = _name_lists(reader)
    draft.operands = [reader.use()]
    _change(reader, draft)


def all_to_all(reader: PrettyReader, draft: Draft) -> None:
    """`all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64} : t -> t`."""
    draft.operands = [reader.use()]
    _change(reader, draft)


def collective_permute(reader: PrettyReader, draft: Draft) -> None:
    """`collective_permute %x {source_target_pairs = dense<…> : …} : t`."""
    draft.operands = [reader.use()]
    _same(reader, draft)


def axis_index(reader: PrettyReader, draft: Draft) -> None:
    """`axis_index "batch" : tensor<i32>`."""
    draft.properties["axis"] = StringAttr(reader.string())
    reader.attribute_dictionary(draft)
    reader.expect(":")
    draft.result_types = [reader.type_()]


PARTIR: dict[str, Callable[[PrettyReader, Draft], None]] = {
    "partir.all_gather": regroup,
    "partir.all_reduce": all_reduce,
    "partir.all_slice": regroup,
    "partir.all_to_all": all_to_all,
    "partir.axis_index": axis_index,
    "partir.collective_permute": collective_permute,
    "partir.embed": embed,
    "partir.loop": loop,
    "partir.once": once,
    "partir.reduce_scatter": reduce_scatter,
    "partir.replicate": mark,
    "partir.slice": slice_,
    "partir.stop": mark,
    "partir.yield": yield_,
}
"""Op name -> what reads the op after its name."""
