"""The rules of every op of the real programs: checked, none blocked by oversight, as Shardy's."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation

from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import Kind, Rule, check_rule, rule_of, rule_text
from partir.partir_dialect.rules.control import REASONS

ROOT = Path(__file__).parents[2]
LARGE = {"t_train_L32", "t5b_train"}
OPAQUE = {CallOp.name, FuncOp.name, ReturnOp.name, "builtin.module", *REASONS}

CHILD = """
import json, sys
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
for dialect in (stablehlo, sdy, chlo):
    dialect.register_dialect(context)

def walk(op, found):
    rule = op.attributes["sdy.sharding_rule"] if "sdy.sharding_rule" in op.attributes else ""
    found.append((op.name, str(rule)))
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                walk(inner.operation, found)
    return found

found = {}
with context:
    for path in sys.argv[1:]:
        module = ir.Module.parse(open(path).read())
        pipeline = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
        passmanager.PassManager.parse(pipeline).run(module.operation)
        found[path] = walk(module.operation, [])
print(json.dumps(found))
"""


def paths_of(programs: Path) -> list[Path]:
    return [path for path in sorted(programs.glob("*.mlir")) if ".generic." not in path.name]


@cache
def operations(path: Path) -> list[Operation]:
    return list(read_module(path.read_text(), str(path)).walk())


@cache
def comparison() -> ModuleType:
    """The comparison with Shardy that the table of instances is tested with."""
    path = ROOT / "tests" / "e2e" / "test_rules_shardy.py"
    spec = importlib.util.spec_from_file_location("rules_shardy", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_blocked(rule: Rule) -> bool:
    return bool(rule.factors) and all(f.kind is Kind.BLOCKED for f in rule.factors)


def test_every_op_has_a_rule_that_fits(programs: Path) -> None:
    paths = paths_of(programs)
    assert len(paths) > 50
    blocked: set[str] = set()
    seen: dict[int, Rule] = {}  # equal ops share a rule
    for path in paths:
        for op in operations.__wrapped__(path):  # not kept: some are large
            rule = rule_of(op)
            if id(rule) in seen:
                continue
            seen[id(rule)] = rule
            check_rule(op, rule)
            if is_blocked(rule) and op.name not in OPAQUE:
                blocked.add(f"{op.name} {rule_text(rule)}")
    assert blocked == {
        "stablehlo.constant -> _",  # tables
        "stablehlo.sort _, _, _ -> _, _, _",  # one dimension, and sorted
    }


@pytest.mark.parametrize("part", range(2))
def test_differences_from_shardy_are_of_documented_kinds(programs: Path, part: int) -> None:
    """Custom calls are left out: JAX writes rules of its own on those."""
    shardy = comparison()
    documented = {
        shardy.our_rules()[name][0]
        for name, reason in shardy.reasons().items()
        if reason not in ("", "no rule")
    }
    paths = [path for path in paths_of(programs)[part::2] if path.stem not in LARGE]
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    answers: dict[str, list[tuple[str, str]]] = json.loads(child.stdout)
    for path in paths:
        ours, theirs = operations(path), answers[str(path)]
        assert [op.name for op in ours] == [op for op, _ in theirs]
        distinct = {
            (text, id(rule)): (op.name, rule)
            for op, (_, text) in zip(ours, theirs, strict=True)
            for rule in (rule_of(op),)
            if text and op.name not in documented | {"stablehlo.custom_call"}
        }
        for (text, _), (op_name, rule) in distinct.items():
            wanted = shardy.comparable(shardy.parse_shardy(text))
            assert (op_name, shardy.comparable(rule)) == (op_name, wanted)
