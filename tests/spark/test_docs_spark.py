"""The pages of the guide that need Spark: their blocks run in their own process and session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (
    "import sys; from pathlib import Path; from documents import run_document; print(run_document(Path(sys.argv[1])))"
)


@pytest.mark.long
@pytest.mark.parametrize(("page", "count"), [("stream.md", 4), ("tasks/change-data.md", 8)])
def test_spark_pages_print_the_documented_output(page: str, count: int, tmp_path: Path) -> None:
    """Smaller forms of them are `test_spark_replace_prefix.py` and `test_spark_operations.py`."""
    places = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "unit"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ROOT / "docs" / page],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout.split()[-1]) == count
