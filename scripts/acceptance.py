"""Runs every test that notes a figure, the long ones too, and writes docs/acceptance.md.

`python scripts/acceptance.py [PYTEST ARGUMENTS]`. Exits with pytest's status.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent

HEAD = """\
# Acceptance

What partir is held to on real programs, and what was found. Written by `make acceptance`; every
line is a test of `tests/shared`, which fails when the figure misses its bar.

| what | figure | bar | held | date |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Line:
    """One figure: what was measured, what came out, what it must be, and whether it is."""

    item: str
    figure: str
    bar: str
    held: bool

    def text(self, date: str) -> str:
        held = "yes" if self.held else "**no**"
        return f"| {self.item} | {self.figure} | {self.bar} | {held} | {date} |\n"


def lines_of(report: str) -> list[Line]:
    """The figures in pytest's JUnit XML; a test that failed before it noted one counts too."""
    found: list[Line] = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        noted = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        failed = case.find("failure") is not None or case.find("error") is not None
        if "item" in noted:
            found.append(Line(noted["item"], noted["figure"], noted["bar"], not failed))
        elif failed:
            found.append(Line(case.attrib["name"], "-", "passes", held=False))
    return found


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = ["-m", "pytest", "-m", "", "-n", "2", f"--junitxml={report}", "tests/shared"]
        status = subprocess.run([sys.executable, *command, *arguments], cwd=ROOT, check=False)
        lines = lines_of(report.read_text())
    date = datetime.date.today().isoformat()
    text = HEAD + "".join(line.text(date) for line in lines)
    (ROOT / "docs" / "acceptance.md").write_text(text)
    return status.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
