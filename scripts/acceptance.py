"""Runs every test that notes a figure, the long ones too, and writes docs/acceptance.md.

`python scripts/acceptance.py [PYTEST ARGUMENTS]`: with arguments, as `tests/shared -k L32`, only
what they select is run anew, and the other figures stay. Exits with pytest's status.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass, fields
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
    """One figure: what was measured, what came out, what it must be, whether it is, and when."""

    item: str
    figure: str
    bar: str
    held: str
    date: str

    def text(self) -> str:
        return f"| {' | '.join(astuple(self))} |\n"


def lines_of(report: str, date: str) -> list[Line]:
    """The figures in pytest's JUnit XML; a test that failed before it noted one counts too."""
    found: list[Line] = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        noted = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        failed = case.find("failure") is not None or case.find("error") is not None
        held = "**no**" if failed else "yes"
        if "item" in noted:
            found.append(Line(noted["item"], noted["figure"], noted["bar"], held, date))
        elif failed:
            found.append(Line(case.attrib["name"], "-", "passes", held, date))
    return found


def kept(page: str) -> list[Line]:
    """The figures of an earlier page that held."""
    rows = [line.strip("|\n ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    lines = [Line(*row) for row in rows[1:] if len(row) == len(fields(Line))]
    return [line for line in lines if line.held == "yes"]


def main(arguments: list[str]) -> int:
    page = ROOT / "docs" / "acceptance.md"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = ["-m", "pytest", "-m", "", "-n", "2", f"--junitxml={report}"]
        command += arguments or ["tests/shared"]
        status = subprocess.run([sys.executable, *command], cwd=ROOT, check=False)
        lines = lines_of(report.read_text(), datetime.date.today().isoformat())
    if arguments and page.exists():
        new = {line.item for line in lines}
        lines = [line for line in kept(page.read_text()) if line.item not in new] + lines
    page.write_text(HEAD + "".join(line.text() for line in lines))
    return status.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
