"""`python -m tableformat`: the command line."""

from __future__ import annotations

from tableformat.cli.main import run

run()
