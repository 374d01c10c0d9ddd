"""What every test needs: JAX on 8 CPU devices, rooms only inside `partir`, the shared programs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("PARTIR_SHARED", ROOT.parent / "shared"))

# Read by JAX when it is first imported, here and in the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices; idle threads would spin
os.environ["XLA_FLAGS"] = " ".join(
    (
        "--xla_force_host_platform_device_count=8",
        "--xla_cpu_collective_call_terminate_timeout_seconds=600",
        "--xla_cpu_collective_timeout_seconds=600",
    )
)


@pytest.fixture(scope="session", autouse=True)
def rooms_are_subpackages() -> Iterator[None]:
    """Fails if a room was imported as a top-level module, which no user's program would see."""
    yield
    loose = {"passes", "tactics"} & sys.modules.keys()
    assert not loose, f"imported as top-level modules: {sorted(loose)}"


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Loads a file of `scripts/` by its stem."""

    def load(name: str) -> ModuleType:
        path = ROOT / "scripts" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"scripts_{name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real programs and the public corpus."""
    return SHARED


@pytest.fixture(scope="session")
def programs(shared: Path) -> Path:
    """The folder with the real programs, `NAME.mlir` and `NAME.json`."""
    return shared / "programs"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out the tests of the shared programs where those are not there."""
    if collection_path == ROOT / "tests" / "shared" and not SHARED.is_dir():
        return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not SHARED.is_dir():
        terminalreporter.write_line("tests/shared left out: PARTIR_SHARED names no folder")
