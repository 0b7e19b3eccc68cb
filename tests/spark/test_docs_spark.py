"""The page of the guide that needs Spark: its blocks run, in a process with a session of their own."""

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
def test_the_stream_that_replaces_by_prefix(tmp_path: Path) -> None:
    """A smaller form of it is `test_spark_replace_prefix.py`."""
    places = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "unit"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ROOT / "docs" / "stream.md"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout.split()[-1]) == 4
