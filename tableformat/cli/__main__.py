"""`python -m tableformat.cli`."""

from __future__ import annotations

from tableformat.cli.main import run

run()
