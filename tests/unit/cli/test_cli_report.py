"""The command line: `report`."""

from __future__ import annotations

from pathlib import Path

from cli_lake import TABLE, make_lake


def test_report(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    page = tmp_path / "report.html"
    run = lake.run("report", TABLE, "-o", page)
    assert (run.status, run.stdout, run.stderr) == (0, f"Wrote {page}.\n", "")
    assert TABLE in page.read_text()
    assert lake.json("report", TABLE, "--page", page) == {"table": TABLE, "page": str(page)}
    assert lake.run("report", TABLE, "-o", tmp_path / "report.pdf").status == 2
