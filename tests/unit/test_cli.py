"""Does the command line do what it says, and say what is wrong where it is?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from partir.cli import main as cli
from partir.cli.main import COMMANDS, main
from partir.cli.run import parse_devices
from partir.cli.tables import amount, duration
from partir.partir_dialect.errors import PartirError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MLP = str(EXAMPLES / "mlp_step.mlir")
CHAIN = """\
module {
  func.func public @main(%x: tensor<256x8xf32> loc("x"), %w1: tensor<8x16xf32> loc("w1"),
      %w2: tensor<16x8xf32> loc("w2")) -> tensor<256x8xf32> {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
      : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    %1 = stablehlo.dot_general %0, %w2, contracting_dims = [1] x [0]
      : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
    return %1 : tensor<256x8xf32>
  }
}
"""
STEPS = ["tile x dim=0 axis=batch", "tile w1 dim=1 axis=model"]
MESH = ["--mesh", "batch=4,model=2"]


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """A file with y = (x·w1)·w2."""
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN)
    return str(path)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Writes a script and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "s.tactic"
        path.write_text(text)
        return str(path)

    return write


def tactics(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--tactic", text)]


def fault(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """Runs a command that fails; gives standard error, which must hold no traceback."""
    assert main(arguments) == status
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return text


# --- what every command has ---------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([command, "--help"])
    assert exit_.value.code == 0
    assert f"example: partir {command}" in capsys.readouterr().out


def test_help_is_quick() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "partir.cli.main", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert all(f"    {command}" in run.stdout for command in COMMANDS)


def test_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "which command?" in fault(capsys)


@pytest.mark.parametrize("command", ["search", "calibrate"])
def test_a_command_that_is_not_there_yet_says_so_in_one_line(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = fault(capsys, command, "step.mlir", "--mesh", "batch=4", "--budget", "5")
    assert text == f"error: this version of partir does not have the command: {command!r}\n"


def test_an_option_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["devices", "--colour"])
    assert exit_.value.code == 2
    assert "--colour" in capsys.readouterr().err


# --- partition ----------------------------------------------------------------------------------


def test_a_row_for_each_tactic(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", chain, *MESH, *tactics(*STEPS)]) == 0
    out = capsys.readouterr().out
    rows = {line.split("│")[1].strip(): line for line in out.splitlines() if "│" in line}
    assert list(rows) == [*STEPS, "final"]
    assert "1 (2.05 kB)" in rows[STEPS[1]]  # one all_reduce of 64x8 floats
    assert "(2.05 kB)" not in rows[STEPS[0]]


def test_the_module_is_written(chain: str, tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    assert main(["partition", chain, *MESH, *tactics(*STEPS), "-o", str(target), "--quiet"]) == 0
    text = target.read_text()
    assert text.count("stablehlo.all_reduce") == 1
    assert "tensor<64x8xf32>" in text and "256x8xf32>," not in text.split("partir.border")[0]


def test_without_output_nothing_is_written(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["partition", chain, *MESH, *tactics(*STEPS), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["chain.mlir"]


def test_output_to_standard_output_moves_the_table(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["partition", chain, *MESH, *tactics(*STEPS), "-o", "-", "--verify"]) == 0
    captured = capsys.readouterr()
    assert "func.func" in captured.out and "all_reduce" in captured.out
    assert "final" in captured.err and captured.err.endswith("equal\n")
    assert "final" not in captured.out


def test_the_report(chain: str, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    arguments = ["partition", chain, *MESH, *tactics(*STEPS, "expect all_gather.count == 0")]
    assert main([*arguments, "--report", str(target), "--quiet"]) == 0
    report = json.loads(target.read_text())
    assert report["program"] == chain
    assert report["mesh"] == [{"axis": "batch", "size": 4}, {"axis": "model", "size": 2}]
    assert report["device"] == "cpu"
    assert report["arguments"] == [
        {
            "name": "x",
            "shape": [256, 8],
            "dtype": "f32",
            "placement": [["batch"], []],
            "partial": [],
        },
        {
            "name": "w1",
            "shape": [8, 16],
            "dtype": "f32",
            "placement": [[], ["model"]],
            "partial": [],
        },
        {
            "name": "w2",
            "shape": [16, 8],
            "dtype": "f32",
            "placement": [["model"], []],
            "partial": [],
        },
    ]
    assert [(r["name"], r["placement"]) for r in report["results"]] == [
        ("result/0", [["batch"], []])
    ]
    assert [step["tactic"] for step in report["steps"]] == [*STEPS, "final"]
    first, last = report["steps"][0], report["steps"][-1]
    floats = 64 * 8 + 8 * 16 + 16 * 8
    assert first["argument_bytes"] == 4 * floats
    assert first["flops"] == 2 * 64 * 8 * 16 * 2
    nothing = {"count": 0, "bytes": 0, "ring_bytes": 0}
    assert last["collectives"] == {
        "all_gather": nothing,
        "all_reduce": {"count": 1, "bytes": 64 * 8 * 4, "ring_bytes": 64 * 8 * 4},
        "reduce_scatter": nothing,
        "all_to_all": nothing,
        "collective_permute": nothing,
    }
    assert last["argument_bytes"] == 4 * (64 * 8 + 8 * 8 + 8 * 8)
    # x, w1, w2 are no donations and live on; beside them x·w1 and the partial product
    assert last["peak_memory_bytes"] == last["argument_bytes"] + 4 * (64 * 8 + 64 * 8)
    assert set(report["seconds"]) == {"read", "prepare", "tactics", "lower", "print"}
    keys = {"seconds", "peak_memory_bytes", "estimated_time_s", "conflicts", "fallbacks"}
    assert all(keys <= step.keys() for step in report["steps"])


def test_without_tactics_the_report_has_the_final_step_alone(chain: str, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    assert main(["partition", chain, *MESH, "--report", str(target), "--quiet"]) == 0
    assert [step["tactic"] for step in json.loads(target.read_text())["steps"]] == ["final"]


def test_shardings(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["partition", chain, *MESH, *tactics(*STEPS), "--emit", "shardings", "-o", "-"]
    assert main([*command, "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "x": [["batch"], []],
        "w1": [[], ["model"]],
        "w2": [["model"], []],
        "result/0": [["batch"], []],
    }


def test_the_html_page_holds_the_table(chain: str, tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    assert (
        main(["partition", chain, *MESH, *tactics(*STEPS), "--html", str(target), "--quiet"]) == 0
    )
    page = target.read_text()
    assert page.startswith("<!DOCTYPE html>") and STEPS[1] in page


def test_mesh_and_device_of_the_script(
    chain: str, script: Callable[[str], str], tmp_path: Path
) -> None:
    path = script("mesh batch=8\ndevice tpu_v5e\ntile x dim=0 axis=batch\n")
    target = tmp_path / "r.json"
    rest = ["--tactics", path, "--report", str(target), "--quiet"]
    assert main(["partition", chain, *rest]) == 0
    report = json.loads(target.read_text())
    assert report["mesh"] == [{"axis": "batch", "size": 8}] and report["device"] == "tpu_v5e"
    assert main(["partition", chain, *rest, "--mesh", "batch=2", "--device", "h100"]) == 0
    report = json.loads(target.read_text())
    assert report["mesh"] == [{"axis": "batch", "size": 2}] and report["device"] == "h100"


def test_files_and_statements_keep_their_order(
    chain: str, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = tmp_path / "r.json"
    path = script(f"{STEPS[1]}\n")
    command = ["partition", chain, *MESH, "--tactic", STEPS[0], "--tactics", path]
    assert main([*command, "--tactic", "replicate w2 axis=batch", "--report", str(target)]) == 0
    steps = json.loads(target.read_text())["steps"]
    assert [s["tactic"] for s in steps] == [*STEPS, "replicate w2 axis=batch", "final"]


# --- faults -------------------------------------------------------------------------------------


def test_an_expectation_that_fails(
    chain: str, script: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ["expect all_reduce.count == 0", "expect argument_bytes < 10B"]
    path = script("\n".join([*STEPS, *wrong, "expect all_gather.count == 0\n"]))
    target = tmp_path / "out.mlir"
    text = fault(capsys, "partition", chain, *MESH, "--tactics", path, "-o", str(target), status=1)
    assert f"{path}:3:" in text and wrong[0] in text
    assert f"{path}:4:" in text and wrong[1] in text and f"{path}:5:" not in text
    assert not target.exists()


def test_a_broken_script(
    chain: str, script: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("tile x dim=0 axis=batch\ntile w1 dim=1 aksis=model\n")
    lines = fault(capsys, "partition", chain, *MESH, "--tactics", path).splitlines()
    assert lines[0].startswith(f"{path}:2:15: error: ") and "axis" in lines[0]
    assert lines[1] == "tile w1 dim=1 aksis=model"
    assert lines[2].index("^") == 14


def test_a_name_that_is_none(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = fault(capsys, "partition", chain, *MESH, "--tactic", "tile w3 dim=0 axis=batch")
    assert "w3" in text and "did you mean" in text


def test_an_axis_that_is_none(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = fault(capsys, "partition", chain, *MESH, "--tactic", "tile x dim=0 axis=bach")
    assert "did you mean 'batch'" in text


def test_a_broken_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text(CHAIN.replace("%0, %w2", "%9, %w2"))
    lines = fault(capsys, "partition", str(path), *MESH).splitlines()
    assert lines[0].startswith(f"{path}:6:") and "error: " in lines[0] and "%9" in lines[0]
    assert "^" in lines[2]


def test_a_module_with_wrong_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text(CHAIN.replace("%w1: tensor<8x16xf32>", "%w1: tensor<9x16xf32>"))
    text = fault(capsys, "partition", str(path), *MESH)
    assert text.startswith(f"{path}:4:") and "error: " in text
    wrong = CHAIN.replace("8x16xf32", "9x16xf32")
    path.write_text(wrong)
    text = fault(capsys, "partition", str(path), *MESH)
    assert text.startswith(f"{path}:4:") and "error: " in text


def test_a_program_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "none.mlir")
    assert "No such file" in fault(capsys, "partition", path, *MESH)


def test_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bytes.mlir"
    path.write_bytes(b"\xff\xfe\x00")
    assert "neither UTF-8 text nor MLIR bytecode" in fault(capsys, "partition", str(path), *MESH)


@pytest.mark.parametrize("mesh", ["batch", "batch=0", "batch=4,batch=2", "4=batch", "batch=x"])
def test_a_mesh_that_cannot_be(mesh: str, chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "error: " in fault(capsys, "partition", chain, "--mesh", mesh)


def test_no_mesh_at_all(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "which mesh?" in fault(capsys, "partition", chain)


def test_a_mesh_that_does_not_divide_is_padded(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.json"
    command = ["partition", chain, "--mesh", "batch=3", "--tactic", STEPS[0]]
    assert main([*command, "--verify", "--report", str(target)]) == 0
    assert capsys.readouterr().out.endswith("equal\n")
    rows = -(-256 // 3)
    last = json.loads(target.read_text())["steps"][-1]
    assert last["argument_bytes"] == 4 * (rows * 8 + 2 * 8 * 16)


def test_a_device_that_is_none(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = fault(capsys, "partition", chain, *MESH, "--device", "tpu_v5x")
    assert "did you mean 'tpu_v5" in text


def test_an_output_that_cannot_be_is_known_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "none" / "out.mlir")
    text = fault(capsys, "partition", "no-program.mlir", *MESH, "-o", target)
    assert "cannot write the output" in text and target in text


def test_two_outputs_in_one_file(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = fault(capsys, "partition", chain, *MESH, "-o", "-", "--report", "-")
    assert "two outputs" in text


def test_a_tactic_without_effect_is_a_warning_and_with_strict_an_error(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["partition", chain, *MESH, *tactics(STEPS[0], STEPS[0]), "--quiet"]
    assert main(command) == 0
    assert "warning: " in capsys.readouterr().err
    assert "already" in fault(capsys, *command, "--strict")


def test_a_fault_of_ours_is_70(
    chain: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise AssertionError("impossible")

    monkeypatch.setattr(cli.COMMANDS["devices"], "run", broken)
    text = fault(capsys, "devices", status=70)
    assert "internal: AssertionError: impossible" in text
    assert main(["devices", "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_debug_shows_where_a_users_fault_was_found(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["partition", chain, "--mesh", "batch=0", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.COMMANDS["devices"], "run", interrupted)
    assert "interrupted" in fault(capsys, "devices", status=130)


# --- the other commands -------------------------------------------------------------------------


def test_verify_says_equal(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", chain, *MESH, *tactics(*STEPS)]) == 0
    assert capsys.readouterr().out == "equal\n"


def test_verify_a_module_that_was_written(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spmd = tmp_path / "spmd.mlir"
    main(["partition", chain, *MESH, *tactics(*STEPS), "-o", str(spmd), "--quiet"])
    assert main(["verify", chain, str(spmd), *MESH]) == 0
    assert capsys.readouterr().out == "equal\n"
    text = spmd.read_text()
    assert "[0, 1]" in text
    spmd.write_text(text.replace("[0, 1]", "[0, 2]").replace("[2, 3]", "[1, 3]"))
    message = fault(capsys, "verify", chain, str(spmd), *MESH, status=1)
    assert "result 'result/0' differs on device " in message


def test_verify_needs_a_module_of_this_program(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "partir.border" in fault(capsys, "verify", chain, chain, *MESH)


def test_explain_a_value(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", chain, *MESH, *tactics(*STEPS), "--value", "w*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "w1: f32[8, 16], on a device [8, 8]"
    assert lines[1] == "  batch: whole: no tactic reaches it"
    assert lines[2].startswith("  model: tiles dimension 1: asked for by tile w1 dim=1 axis=model")
    assert lines[3] == "w2: f32[16, 8], on a device [8, 8]"
    assert lines[5].startswith("  model: tiles dimension 0: inferred by tile w1 dim=1 axis=model")


def test_explain_collectives(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", chain, *MESH, *tactics(*STEPS), "--collectives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all_reduce(model) of stablehlo.dot_general: 2.05 kB"
    assert lines[1] == "  from f32[64, 8] [{batch}, {}] add@model to f32[64, 8] [{batch}, {}]"
    assert STEPS[1] in lines[3] and lines[-1] == "1 collectives"


def test_explain_conflicts(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = "for v in w1, x { tile v dim=0 axis=batch }"
    command = ["explain", chain, *MESH, "--tactic", both, "--conflicts"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "batch could tile stablehlo.dot_general" in out and "in 2 ways" in out
    assert "w1" in out and "x" in out


def test_explain_fallbacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cholesky.mlir"
    path.write_text("""\
func.func public @main(%x: tensor<8x8xf32> loc("x")) -> tensor<8x8xf32> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<8x8xf32> loc("model.py":3:4)
  return %0 : tensor<8x8xf32>
}
""")
    command = [str(path), *MESH, "--tactic", "tile x dim=0 axis=batch"]
    assert main(["explain", *command, "--fallbacks"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "x is gathered along batch: 256 B",
        "  for stablehlo.cholesky at model.py:3:4, which cannot be tiled there",
        "1 fallbacks",
    ]
    assert main(["explain", *command]) == 0
    assert "because of tile x dim=0 axis=batch" in capsys.readouterr().out
    assert main(["explain", *command, "--conflicts"]) == 0
    assert capsys.readouterr().out == "no conflicts\n"


def test_explain_a_name_that_is_none(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" in fault(capsys, "explain", chain, *MESH, "--value", "w9")


def test_diff_and_report(chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths: list[str] = []
    for name, text in (("a", STEPS[0]), ("b", "\n".join(STEPS))):
        (tmp_path / f"{name}.tactic").write_text(text + "\n")
        paths.append(str(tmp_path / f"{name}.tactic"))
    assert main(["diff", *paths, chain, *MESH]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("all_reduce" in line and "1 (2.05 kB)" in line for line in lines)
    changed = [line.split("│")[1].strip() for line in lines if "{" in line]
    assert changed == ["w1", "w2"]
    reports: list[str] = []
    for path in paths:
        reports.append(f"{path}.json")
        main(["partition", chain, *MESH, "--tactics", path, "--report", reports[-1], "--quiet"])
    assert main(["report", *reports]) == 0
    assert any("w2" in line for line in capsys.readouterr().out.splitlines())
    assert "no report of partir" in fault(capsys, "report", reports[0], _json(tmp_path, "{}"))
    assert "no JSON" in fault(capsys, "report", reports[0], _json(tmp_path, "{"))


def _json(folder: Path, text: str) -> str:
    (folder / "x.json").write_text(text)
    return str(folder / "x.json")


def test_check(
    chain: str, script: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("mesh batch=4\ntile w3 dim=0 axis=batch\n")
    assert main(["check", path]) == 0
    assert capsys.readouterr().out == f"{path}: good\n"
    assert f"{path}:2:6: error: " in fault(capsys, "check", path, chain)


def test_fmt(script: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    path = script("batch( axis = batch )\n")
    assert main(["fmt", "--check", path]) == 1
    assert main(["fmt", path]) == 0
    assert Path(path).read_text() == "batch(axis=batch)\n"
    assert main(["fmt", "--check", path]) == 0
    assert "No such file" in fault(capsys, "fmt", path + ".none")


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    names = "tpu_v3 tpu_v4 tpu_v5e tpu_v5p tpu_v6e a100_40 a100_80 h100 h200 cpu".split()
    assert all(f"│ {name} " in out for name in names)


def test_run_times_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    script = str(EXAMPLES / "data_parallel.tactic")
    command = ["run", MLP, "--tactics", script, "--devices", "cpu:8", "--steps", "2"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[1:3]] == ["step 1", "step 2"]
    assert lines[-1].endswith("on 8 cpu devices")


def test_run_on_too_few_devices(capsys: pytest.CaptureFixture[str]) -> None:
    script = str(EXAMPLES / "data_parallel.tactic")
    text = fault(capsys, "run", MLP, "--tactics", script, "--devices", "cpu:4")
    assert "needs 8 devices, got: 4" in text


def test_a_plan_of_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = fault(capsys, "plan", str(tmp_path / "none.json"))
    assert "none.json" in text


# --- small things -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (512, "512 B"), (2048, "2.05 kB"), (999_999, "1000 kB"), (3.57e6, "3.57 MB")],
)
def test_bytes_for_people(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.25e-5, "12.5 us"), (0.0034, "3.4 ms"), (2.0, "2 s")]
)
def test_seconds_for_people(value: float, text: str) -> None:
    assert duration(value) == text


def test_devices_are_read() -> None:
    assert parse_devices("cpu:8") == ("cpu", 8)
    assert parse_devices("gpu") == ("gpu", None)
    for wrong in ("", ":8", "cpu:", "cpu:0", "cpu:x"):
        with pytest.raises(PartirError, match="devices are written"):
            parse_devices(wrong)
