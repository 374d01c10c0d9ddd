"""Do the dialects have exactly the ops of jaxlib's bindings, with their operands and properties?

The bindings are generated from the same definitions as MLIR's own classes: they name every
operand in order, every property and whether it is optional, and every region.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from xdsl.irdl import OptPropertyDef

from partir.partir_dialect import chlo, sdy, stablehlo
from partir.partir_dialect.context import make_context
from partir.partir_dialect.stablehlo_base import HloOp

MINE = {
    "stablehlo": stablehlo.OPS,
    "chlo": chlo.OPS,
    "sdy": sdy.OPS,
}
# Default-valued in MLIR, so that texts may leave them out.
DEFAULTED = {("stablehlo.infeed", "infeed_config"), ("stablehlo.outfeed", "outfeed_config")}
SEGMENTS = {"operandSegmentSizes", "resultSegmentSizes"}


each_op = pytest.mark.parametrize(
    "op", [op for ops in MINE.values() for op in ops], ids=lambda op: op.name
)


@dataclass
class Binding:
    """What a binding says of an op."""

    name: str
    operands: list[str] = field(default_factory=list)
    properties: dict[str, bool] = field(default_factory=dict)
    regions: list[str] = field(default_factory=list)


def is_property(function: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def add_accessor(binding: Binding, function: ast.FunctionDef) -> None:
    body = "\n".join(ast.unparse(statement) for statement in function.body)
    kind = ast.unparse(function.returns) if function.returns else ""
    if "operation.operands" in body:
        binding.operands.append(function.name)
    elif "operation.attributes" in body:
        found = re.search(r"""['"](\w+)['"] (?:not )?in|attributes\[['"](\w+)['"]\]""", body)
        assert found is not None
        optional = "Optional" in kind or kind == "bool"
        binding.properties[found.group(1) or found.group(2)] = optional
    elif "regions" in body:
        binding.regions.append(function.name)


@cache
def bindings(dialect: str) -> dict[str, Binding]:
    spec = importlib.util.find_spec("jaxlib")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "mlir" / "dialects" / f"_{dialect}_ops_gen.py"
    out: dict[str, Binding] = {}
    for node in ast.parse(path.read_text()).body:
        decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
        if not isinstance(node, ast.ClassDef) or not any(
            "register_operation" in decorator for decorator in decorators
        ):
            continue
        binding = Binding("")
        for item in node.body:
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "OPERATION_NAME":
                binding.name = ast.literal_eval(item.value)
            if isinstance(item, ast.FunctionDef) and is_property(item):
                add_accessor(binding, item)
        out[binding.name] = binding
    return out


@pytest.mark.parametrize(("dialect", "count"), [("stablehlo", 117), ("chlo", 51), ("sdy", 19)])
def test_the_dialect_has_the_ops_of_the_bindings(dialect: str, count: int) -> None:
    names = {op.name for op in MINE[dialect]}
    assert names == set(bindings(dialect))
    assert len(MINE[dialect]) == len(names) == count


@each_op
def test_an_op_has_the_fields_of_its_binding(op: type[HloOp]) -> None:
    want = bindings(op.name.split(".")[0])[op.name]
    definition = op.get_irdl_definition()
    assert [name for name, _ in definition.operands] == want.operands
    assert [name for name, _ in definition.regions] == want.regions
    got = {
        key: isinstance(value, OptPropertyDef) and (op.name, key) not in DEFAULTED
        for key, value in definition.properties.items()
        if key not in SEGMENTS
    }
    assert got == {k: v for k, v in want.properties.items() if k not in SEGMENTS}


@each_op
def test_an_op_is_explained(op: type[HloOp]) -> None:
    text = op.__doc__ or ""
    assert op.name in text, f"the docstring of {op.name} shows no snippet"
    assert len(text.split("`%")[0].strip()) > 2


def test_the_context_knows_every_op() -> None:
    context = make_context(allow_unregistered=False)
    for ops in MINE.values():
        for op in ops:
            assert context.get_op(op.name) is op
