"""Runs the same work in DuckLake, in a separate process, because its extension needs another DuckDB version than the
library.

The interpreter is the one of `.venv-duckdb-iceberg` or the one in TABLEFORMAT_DUCKLAKE_PYTHON; it needs `duckdb==1.5.5`
and `duckdb-extension-ducklake==1.5.5` from PyPI.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_WORKER: Final = Path(__file__).with_name("ducklake_worker.py")
_ENVIRONMENT: Final = Path(__file__).resolve().parents[2] / ".venv-duckdb-iceberg" / "bin" / "python"
_IMPORTS: Final = "import duckdb, duckdb_extension_ducklake; assert duckdb.__version__ == '1.5.5'"


def ducklake_python() -> str | None:
    """An interpreter that has DuckLake, or None."""
    python = os.environ.get("TABLEFORMAT_DUCKLAKE_PYTHON", str(_ENVIRONMENT))
    if not Path(python).exists():
        return None
    probe = subprocess.run([python, "-c", _IMPORTS], capture_output=True, check=False)
    return python if probe.returncode == 0 else None


class DuckLake:
    """A DuckLake table in another process; the seconds that it answers with are its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the DuckLake process ended; its traceback is above"
        return dict(json.loads(answer))


@contextmanager
def running_ducklake(python: str, directory: Path, data_files: Sequence[str]) -> Iterator[DuckLake]:
    """A DuckLake table `calendars` that holds the rows of the data files."""
    directory.mkdir(parents=True)
    command = [python, str(_WORKER), str(directory), *data_files]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        lake = DuckLake(process)
        try:
            lake.call(verb="ready")
            yield lake
        finally:
            assert process.stdin is not None
            process.stdin.close()
