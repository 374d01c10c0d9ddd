"""Real programs and the public corpus, read and printed: jaxlib judges that nothing changed."""

from __future__ import annotations

import csv
import importlib.util
import json
import random
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from partir.partir_dialect.errors import ReadError
from partir.partir_dialect.names import argument_names, flat_path, result_names
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module, verify_module

TESTS = Path(__file__).parents[1]
Measure = Callable[[str, object, object], None]
LARGE = ("t_train_L32", "t5b_train")
READ = "yes"
"""How `parses_with_jaxlib` begins for the files that must be read."""

KNOWN = {
    "vhlo_stablehlo_mix_invalid.mlir": "VHLO in pretty form: only as a portable artifact",
    "convert_sdy_shardings_to_mpmd_types.mlir": "the mpmd dialect in pretty form",
    "enforce_user_shardings.mlir": "the mpmd dialect in pretty form",
    "populate_unreduced_out_sharding.mlir": "the mpmd dialect in pretty form",
    "sharding_propagation_pipeline.mlir": "the mpmd dialect in pretty form",
    "simplify_program.mlir": "the mpmd dialect in pretty form",
}
"""What is not read, and why."""


def _load(name: str, folder: Path = TESTS) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reading_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


child = _load("reading_child")
mutations = _load("reading_mutations")


@pytest.fixture(scope="module")
def reprinter() -> Iterator[Any]:
    with child.Reprinter() as process:
        yield process


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Measure:
    """Notes a figure and what it must be, for docs/acceptance.md."""

    def note(item: str, figure: object, bar: object) -> None:
        for name, value in (("item", item), ("figure", figure), ("bar", bar)):
            record_property(name, value)

    return note


def differences(reprinter: Any, module: ModuleOp, want: str, *, unregistered: bool) -> list[str]:
    """Where jaxlib's text of ours is not `want`, in both of our forms."""
    found: list[str] = []
    for pretty in (False, True):
        ours = print_module(module, pretty=pretty)
        form = "pretty" if pretty else "generic"
        try:
            got = reprinter.generic(ours, unregistered=unregistered)
        except child.Rejected as error:
            found.append(f"{form}: rejected: {error}")
            continue
        if got != want:
            pairs = zip(want.split("\n"), got.split("\n"), strict=False)
            first = next(((a, b) for a, b in pairs if a != b), ("length", "length"))
            found.append(f"{form}: wanted {first[0][:300]}, got {first[1][:300]}")
    return found


# --- programs -----------------------------------------------------------------------------------


def test_every_program_reads_and_prints_as_itself(programs: Path, reprinter: Any) -> None:
    paths = [p for p in sorted(programs.glob("*.mlir")) if not p.name.startswith(LARGE)]
    assert len(paths) > 100
    for path in [*paths, programs / "t_train_L32.mlir"]:
        text = path.read_text(encoding="utf-8")
        module = read_module(text, str(path))
        verify_module(module, text, str(path))
        want = reprinter.generic(text)
        assert differences(reprinter, module, want, unregistered=False) == [], path.name


def test_locations_are_kept(programs: Path, reprinter: Any) -> None:
    """jaxlib's text with locations is the same after a round trip.

    Not where a text leaves a location out, as the pretty form of `while` does for what it carries:
    jaxlib then notes the place in the text that it read.
    """
    checked = 0
    for path in sorted(programs.glob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        if path.name.startswith(LARGE) or len(text) > 400_000:
            continue
        want = reprinter.generic(text, places=True)
        if 'loc("-":' in want:
            continue
        module = read_module(text, str(path))
        for pretty in (False, True) if "stablehlo.while" not in text else (False,):
            ours = print_module(module, pretty=pretty, locations=True)
            assert reprinter.generic(ours, places=True) == want, (path.name, pretty)
        checked += 1
    assert checked > 60


def test_argument_and_result_names_are_those_of_the_program(programs: Path) -> None:
    for path in sorted(programs.glob("*.json")):
        if path.name == "baseline.json" or path.stem in LARGE:
            continue
        told = json.loads(path.read_text())
        module = read_module(path.with_suffix(".mlir").read_text(), path.stem)
        main = next(op for op in module.body.block.ops if isinstance(op, FuncOp))
        assert main.sym_name.data == "main"
        assert argument_names(main) == [flat_path(a["name"]) for a in told["arguments"]]
        wanted = [flat_path(r["name"]) for r in told["results"]]
        assert result_names(main) == ["result/0" if name == "result" else name for name in wanted]


def test_pretty_text_is_what_jaxlib_prints(programs: Path, reprinter: Any) -> None:
    for path in sorted(programs.glob("*.mlir")):
        if ".generic." in path.name or path.name.startswith(LARGE):
            continue
        text = path.read_text(encoding="utf-8")
        ours = print_module(read_module(text, str(path)), pretty=True)
        assert ours.rstrip() == reprinter.pretty(text).rstrip(), path.name


@pytest.mark.acceptance
def test_reading_and_printing_are_fast(programs: Path, measure: Measure) -> None:
    benchmark = _load("read_print", TESTS.parent / "benchmarks")
    read, printed = benchmark.ratios(benchmark.medians(programs / "t_train_L32.mlir"))
    figure = f"{read:.2f} and {printed:.2f}"
    measure("t_train_L32: read / jaxlib's, print / jaxlib's", figure, "<= 4 and <= 0.7")
    assert read <= 4
    assert printed <= 0.7


# --- the corpus ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """One file of the corpus, and what its index says of it."""

    path: Path
    kind: str

    @property
    def unregistered(self) -> bool:
        return "unregistered" in self.kind or not self.kind.startswith(READ)

    def pieces(self) -> list[str]:
        """The modules in it."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        if self.kind == "yes-part1":
            text = text.split("//--- part1.mlir")[1].split("//--- part2.mlir")[0]
        if "normalised" in self.kind:
            text = _without_checks(text)
            text = text.replace("util.unfoldable_constant", "stablehlo.constant")
        pieces = re.split(r"^// -----.*$", text, flags=re.MULTILINE)
        return [piece for piece in pieces if piece.strip()]


def _without_checks(text: str) -> str:
    """The text without `check.…` ops, which end with a tensor type."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        inside = inside or line.strip().startswith("check.")
        if not inside:
            lines.append(line)
        inside = inside and not re.search(r"tensor<[^<>]*(<[^<>]*>)?>\s*(//.*)?$", line)
    return "\n".join(lines)


def files(shared: Path, kinds: str) -> list[File]:
    with (shared / "corpus" / "index.csv").open(newline="") as index:
        rows = list(csv.DictReader(index))
    return [
        File(shared / "corpus" / row["file"], row["parses_with_jaxlib"])
        for row in rows
        if re.match(kinds, row["parses_with_jaxlib"])
    ]


def faults(reprinter: Any, file: File) -> list[str]:
    """What is wrong with our reading of a file that must be read."""
    found: list[str] = []
    for piece in file.pieces():
        try:
            want = reprinter.generic(piece, unregistered=file.unregistered)
        except child.Rejected:
            continue  # what its index says is about other pieces
        try:
            module = read_module(piece, file.path.name)
        except ReadError as error:
            found.append(str(error))
            continue
        found += differences(reprinter, module, want, unregistered=file.unregistered)
    return found


def _read_all(reprinter: Any, chosen: list[File]) -> dict[str, list[str]]:
    return {f.path.name: found for f in chosen if (found := faults(reprinter, f))}


def test_corpus_reads_and_prints_as_itself(shared: Path, reprinter: Any) -> None:
    """A tenth of the files, drawn with a fixed seed; `make acceptance` takes all."""
    chosen = [f for f in files(shared, READ) if f.path.stat().st_size < 100_000]
    chosen = random.Random(0).sample(chosen, len(chosen) // 10)
    assert len(chosen) > 100
    wrong = _read_all(reprinter, chosen)
    assert set(wrong) <= set(KNOWN), wrong


@pytest.mark.acceptance
def test_whole_corpus_reads_and_prints_as_itself(
    shared: Path, reprinter: Any, measure: Measure
) -> None:
    chosen = files(shared, READ)
    wrong = _read_all(reprinter, chosen)
    good = 1 - len(wrong) / len(chosen)
    measure("corpus: files read and printed as themselves", f"{good:.2%}", ">= 99.5 %")
    assert set(wrong) <= set(KNOWN), wrong
    assert good >= 0.995


@pytest.mark.acceptance
def test_what_jaxlib_rejects_is_rejected_with_its_place(
    shared: Path, reprinter: Any, measure: Measure
) -> None:
    """Pieces of negative tests. Without quantised types, which jaxlib does not know at all."""
    verdicts: Counter[tuple[bool, bool]] = Counter()
    missed: list[str] = []
    for file in files(shared, "partly|no|yes"):
        if "quantized" in str(file.path) or "quant" in file.path.name:
            continue
        for piece in file.pieces():
            if "!quant." in piece:
                continue
            try:
                reprinter.generic(piece, unregistered=file.unregistered)
                theirs = True
            except child.Rejected:
                theirs = False
            ours = _accepted(piece)
            verdicts[theirs, ours] += 1
            if ours and not theirs:
                missed.append(file.path.name)
    rejected = verdicts[False, False] + verdicts[False, True]
    agreed = verdicts[False, False] / rejected
    measure("corpus: rejected pieces that we reject too", f"{agreed:.2%} of {rejected}", ">= 95 %")
    assert rejected > 900
    assert agreed >= 0.95, Counter(missed)


def _accepted(piece: str) -> bool:
    try:
        verify_module(read_module(piece), piece)
    except ReadError as error:
        assert error.span is not None or "symbol" in str(error)
        return False
    return True


# --- broken texts -------------------------------------------------------------------------------


def _seeds(shared: Path) -> list[str]:
    paths = [*(shared / "programs").glob("*.mlir"), *(f.path for f in files(shared, READ))]
    small = sorted(p for p in paths if p.stat().st_size < 30_000)
    return [p.read_text(encoding="utf-8", errors="replace") for p in small]


def _break(seeds: list[str], count: int, seed: int) -> Counter[str]:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        text = mutations.mutated(rng.choice(seeds), rng)
        start = time.monotonic()
        try:
            module = read_module(text, "broken.mlir")
            print_module(module)
            print_module(module, pretty=True)
            verify_module(module, text)
            outcomes["valid"] += 1
        except ReadError as error:
            assert error.span is not None or "symbol" in str(error), text
            outcomes["rejected"] += 1
        outcomes["slow"] += time.monotonic() - start > 10
    return outcomes


def test_broken_texts_end_in_located_errors(shared: Path) -> None:
    outcomes = _break(_seeds(shared), 400, seed=1)
    assert outcomes["rejected"] > 200
    assert outcomes["slow"] == 0


@pytest.mark.acceptance
def test_ten_thousand_broken_texts_end_in_located_errors(shared: Path, measure: Measure) -> None:
    outcomes = _break(_seeds(shared), 10_000, seed=2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    figure = f"{outcomes['rejected']} located errors, {outcomes['slow']} above 10 s, {peak:.2f} GB"
    measure("10,000 mutated modules: no traceback", figure, "0 above 10 s, < 1 GB")
    assert outcomes["rejected"] > 5000
    assert outcomes["slow"] == 0
    assert peak < 1
