"""`python -m tableformat.cli`."""

from __future__ import annotations

from tableformat.cli.main import app

app(prog_name="tableformat")
