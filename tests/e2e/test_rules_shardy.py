"""Our rules against Shardy's: every difference is listed, with its reason, in docs/rules.md.

Shardy's `sdy-populate-op-sharding-rules` runs in a child process (bad input may abort it) over
`tests/unit/test_rules.mlir`. Run this file as a script to write the tables of docs/rules.md anew.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import Factor, Kind, Rule, rule_of, rule_text

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "unit" / "test_rules.mlir"
DOCS = ROOT / "docs" / "rules.md"
_ROW = re.compile(
    r"// rule: .*\n(?:// linear: .*\n)?(?:// shardy: (?P<reason>.*)\n)?func\.func @(?P<name>\w+)"
)

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
found = {}
with context:
    module = ir.Module.parse(open(sys.argv[1]).read())
    pipeline = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
    passmanager.PassManager.parse(pipeline).run(module.operation)
    for function in module.body.operations:
        last = list(function.regions[0].blocks[0].operations)[-1]
        op = last.operands[0].owner
        rule = op.attributes["sdy.sharding_rule"] if "sdy.sharding_rule" in op.attributes else ""
        found[function.attributes["sym_name"].value] = str(rule)
print(json.dumps(found))
"""

REASONS = {
    "no rule": "Shardy has no rule: it removes the op first (CHLO, old ops), treats it as data "
    "flow (control flow, barriers) or gives it no sharding (constants). Ours says what can be.",
    "apart": "Windows that neither overlap nor are padded lie within tiles: parallel, without any "
    "exchange. Shardy exchanges.",
    "body": "Shardy calls it a reduction whatever the body computes. No single all-reduce combines "
    "these partial results: blocked, or the number is wrong.",
    "bits": "Shardy tiles random bits, so that each device draws its own. Blocked: equal to the "
    "unsharded bits or not at all.",
    "columns": "The right-hand sides of a triangular solve are independent; Shardy gathers them.",
    "coprime": "Minor factors behind a blocked major one could never be tiled: left out.",
    "cumulative": "A window as long as the dimension needs all of it: blocked, not a permutation.",
    "exchange": "Possible by exchanging tiles; Shardy always gathers.",
    "from one": "Made from one element, every device makes its own tile; Shardy makes it whole.",
    "halo": "Shardy splits the image into positions and taps and sums over the taps; but windows "
    "overlap, and that needs a halo all the same. We keep one special factor.",
    "identity": "A concatenation of one operand is the identity.",
    "mask": "An indexed dimension is special: each device handles what falls into its tile. Shardy "
    "gathers it, or calls it parallel and leaves the correction to the partitioner.",
    "odd": "The sizes on both sides have no common divisor: no even tile, so blocked.",
    "one": "One element of a tiled dimension is a masked sum, as in a gather; Shardy permutes.",
    "start": "A window that is whole but starts by index is in place for start 0 only; XLA and the "
    "specification differ in what other starts do. Blocked.",
    "to one": "Nothing of the result can be tiled and no sum makes it: blocked.",
}


@cache
def shardy_rules(path: Path = TABLE) -> dict[str, str]:
    """Function name -> Shardy's rule of the op that makes its first result ('' if it has none)."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True
    )
    return json.loads(child.stdout)


@cache
def reasons() -> dict[str, str]:
    """Function name -> the reason that the table gives for a difference ('' if none)."""
    return {m["name"]: (m["reason"] or "").strip() for m in _ROW.finditer(TABLE.read_text())}


@cache
def our_rules() -> dict[str, tuple[str, Rule]]:
    """Function name -> (op name, our rule)."""
    found: dict[str, tuple[str, Rule]] = {}
    for function in read_module(TABLE.read_text(), str(TABLE)).body.block.ops:
        assert isinstance(function, FuncOp)
        last = function.body.block.last_op
        assert last is not None
        op = last.operands[0].owner
        assert isinstance(op, Operation)
        found[function.sym_name.data] = (op.name, rule_of(op))
    return found


def parse_shardy(text: str) -> Rule:
    """`#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=4, …} reduction={k}>` as a rule."""
    body = re.fullmatch(r"#sdy\.op_sharding_rule<\((.*)\)->\((.*?)\)(.*)>", text)
    assert body is not None, text
    sizes = {n: int(s) for n, s in re.findall(r"([a-z](?:_\d+)?)=(\d+)", body[3])}
    groups = {
        group: set(re.findall(r"[a-z](?:_\d+)?", inner))
        for group, inner in re.findall(r"(\w+)=\{([^}]*)\}", body[3])
    }
    numbers = {name: k for k, name in enumerate(n for n in sizes if sizes[n] > 1)}

    def factor(name: str) -> Factor:
        if name in groups.get("reduction", ()):
            return Factor(sizes[name], Kind.REDUCTION, reducer="add")
        if name in groups.get("need_replication", ()):
            return Factor(sizes[name], Kind.BLOCKED)
        if name in groups.get("permutation", ()):
            return Factor(sizes[name], Kind.SPECIAL, rewrite="permutation")
        return Factor(sizes[name])

    def dim(text: str) -> tuple[int, ...]:
        return tuple(numbers[n] for n in re.findall(r"[a-z](?:_\d+)?", text) if n in numbers)

    def values(side: str) -> tuple[tuple[tuple[int, ...], ...], ...]:
        return tuple(
            tuple(dim(text) for text in value.split(",") if text)
            for value in re.findall(r"\[([^\]]*)\]", side)
        )

    return Rule(tuple(factor(name) for name in numbers), values(body[1]), values(body[2]))


def comparable(rule: Rule) -> str:
    """What both say, in one notation: kinds without rewrites, `1` for a dimension that no axis can
    tile, and the sizes of all but special factors."""
    factors = [_plain(f) for f in rule.factors]

    def dims(table: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(() if all(_is_blocked(factors[f]) for f in made) else made for made in table)

    operands = tuple(dims(value) for value in rule.operands)
    results = tuple(dims(value) for value in rule.results)
    order = dict.fromkeys(f for value in (*operands, *results) for made in value for f in made)
    sizes = [factors[f].size for f in order if factors[f].size]
    return f"{rule_text(Rule(tuple(factors), operands, results))} sizes {sizes}"


def _is_blocked(factor: Factor) -> bool:
    return factor.kind is Kind.BLOCKED


def _plain(factor: Factor) -> Factor:
    if factor.kind is Kind.REDUCTION or (factor.kind is Kind.SPECIAL and factor.reducer):
        return Factor(factor.size, Kind.REDUCTION, reducer="add")
    if factor.kind is Kind.SPECIAL:
        return Factor(0, Kind.SPECIAL, rewrite="rewrite")
    return replace(factor, rewrite=None)


def differs(name: str) -> bool:
    text = shardy_rules()[name]
    return not text or comparable(parse_shardy(text)) != comparable(our_rules()[name][1])


def test_shardy_knows_most_of_the_table() -> None:
    assert sum(bool(text) for text in shardy_rules().values()) > 120


@pytest.mark.parametrize("name", reasons())
def test_difference_has_a_reason(name: str) -> None:
    reason = reasons()[name]
    text = shardy_rules()[name]
    assert reason in ("", *REASONS)
    shown = f"ours {comparable(our_rules()[name][1])}, Shardy's {text or 'none'}"
    assert differs(name) == bool(reason), shown
    assert (reason == "no rule") == (not text)


def differences_table() -> str:
    """The rows of docs/rules.md: every difference between two rules."""
    lines = ["| instance | ours | Shardy | why |", "|---|---|---|---|"]
    for name, reason in reasons().items():
        if reason and reason != "no rule":
            op, rule = our_rules()[name]
            theirs = rule_text(parse_shardy(shardy_rules()[name]))
            lines.append(f"| `{op}` {name} | `{rule_text(rule)}` | `{theirs}` | {reason} |")
    return "\n".join(lines)


def reasons_table() -> str:
    """The reasons, and the ops for which Shardy has no rule."""
    lines = ["| why | |", "|---|---|", *(f"| {k} | {v} |" for k, v in REASONS.items())]
    missing = dict.fromkeys(our_rules()[n][0] for n, r in reasons().items() if r == "no rule")
    return "\n".join([*lines, "", "Without a rule in Shardy: " + ", ".join(missing) + "."])


def with_tables(text: str) -> str:
    """The page with its generated parts made anew."""
    for mark, table in (("differences", differences_table()), ("reasons", reasons_table())):
        pattern = re.compile(rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        assert pattern.search(text), f"docs/rules.md lacks the mark {mark}"
        text = pattern.sub(lambda m, table=table: m[1] + table + m[2], text)
    return text


def test_every_reason_is_used() -> None:
    assert set(REASONS) == set(reasons().values()) - {""}


def test_docs_list_every_difference() -> None:
    assert DOCS.read_text() == with_tables(DOCS.read_text())


if __name__ == "__main__":
    DOCS.write_text(with_tables(DOCS.read_text()))
