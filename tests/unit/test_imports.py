"""Do imports go one way, and is nothing slow imported before it is needed?"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def check(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("check_imports")


def test_the_project_imports_one_way(check: ModuleType) -> None:
    assert check.faults() == []


def test_relative_imports_are_resolved(check: ModuleType) -> None:
    tree = ast.parse("from ..passes import cse\nfrom .here import x\nfrom .. import engine\n")
    assert list(check.imported_rooms(tree, ("cost",))) == [
        (1, "passes"),
        (2, "cost"),
        (3, "engine"),
    ]


def test_imports_inside_functions_count(check: ModuleType) -> None:
    tree = ast.parse("def f():\n    from ...cli.main import main\n")
    assert list(check.imported_rooms(tree, ("partir_dialect", "rules"))) == [(2, "cli")]


@pytest.mark.parametrize(
    ("room", "text", "fault"),
    [
        ("engine", "from ..passes import cse", "engine may not import passes"),
        ("passes", "from ..interp import run", "passes may not import interp"),
        ("cli", "from ..partir import read", "cli may not import partir"),
        ("cost", "import partir.engine", "imports inside the package are relative"),
        ("cost", "from partir.engine import graph", "imports inside the package are relative"),
    ],
)
def test_an_import_the_wrong_way_is_found(
    check: ModuleType, tmp_path: Path, room: str, text: str, fault: str
) -> None:
    (tmp_path / room).mkdir()
    (tmp_path / room / "file.py").write_text(f"import sys\n{text}\n")
    assert check.faults(tmp_path) == [f"{room}/file.py:2: {fault}"]


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running `code`."""
    code += "\nimport sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_the_help_imports_nothing_slow() -> None:
    loaded = loaded_by("from partir.cli.main import build_parser; build_parser().format_help()")
    assert "partir.cli.main" in loaded
    assert not {"jax", "rich", "numpy", "xdsl", "lark", "matplotlib"} & loaded


def test_importing_partir_imports_no_jax() -> None:
    loaded = loaded_by("import partir; partir.read; partir.Mesh; partir.partition")
    assert "partir.runtime.program" in loaded
    assert not {"jax", "rich"} & loaded


ALONE = """
import importlib, sys

names = sys.stdin.read().split()
for name in names:
    for loaded in [m for m in sys.modules if m.startswith("partir.")]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except Exception as error:
        print(name, type(error).__name__, error)
print(len(names), "modules")
"""


def test_every_package_can_be_imported_first(script: Callable[[str], ModuleType]) -> None:
    links = script("make_links")
    folders = links.package_folders()
    names = list(folders)
    for package in ("partir.partir_dialect.reader", "partir.partir_dialect.printer"):
        files = sorted((links.ROOT / folders[package]).glob("*.py"))
        names += [f"{package}.{file.stem}" for file in files if file.stem != "__init__"]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE],
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == f"{len(names)} modules\n" and len(names) > 20
