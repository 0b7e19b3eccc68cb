"""Create the virtual environment in which DuckDB's own Iceberg extension reads our tables.

    python tests/integration/duckdb_iceberg_env.py

The extension exists for DuckDB 1.5.5, and the library uses a newer DuckDB; an environment can hold only one of them.
The environment is `.venv-duckdb-iceberg` next to `pyproject.toml`; if it is complete, it is not changed. The extensions
are files inside two packages from PyPI, so loading them downloads nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = (
    "duckdb==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "duckdb-extension-avro==1.5.5",
    # REST catalogs.
    "duckdb-extension-httpfs==1.5.5",
    # For the benchmarks that compare with DuckLake.
    "duckdb-extension-ducklake==1.5.5",
    "pyarrow==26.0.1",
)
ENVIRONMENT: Final = Path(__file__).resolve().parents[2] / ".venv-duckdb-iceberg"
_IMPORTS: Final = (
    "import duckdb, duckdb_extension_iceberg, duckdb_extension_avro, duckdb_extension_httpfs; "
    "assert duckdb.__version__ == '1.5.5'"
)


def environment_python() -> Path:
    """The path of the environment's interpreter, whether or not it exists."""
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@cache
def is_complete() -> bool:
    """Whether the environment exists and has the packages; checked once in each process."""
    python = environment_python()
    return (
        python.exists() and subprocess.run([python, "-c", _IMPORTS], capture_output=True, check=False).returncode == 0
    )


def create() -> None:
    """Make the environment and install into it. Raises CalledProcessError when an installation fails."""
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    subprocess.run([environment_python(), "-m", "pip", "install", "--quiet", "--no-compile", *REQUIREMENTS], check=True)


if __name__ == "__main__":
    if not is_complete():
        create()
    sys.stdout.write(f"{environment_python()}\n")
