"""Asks for confirmation before a command removes something."""

from __future__ import annotations

import sys

import typer

from tableformat.cli.session import Session


def require_terminal(what: str) -> None:
    """A usage error where nobody can be asked, rather than a wait that nobody sees."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{what} There is no terminal to ask on; --yes confirms.")


def ask(question: str, session: Session) -> None:
    """Go on when the answer is yes; end the command with status 1, and nothing changed, when it is no."""
    require_terminal(question)
    if not typer.confirm(question, err=True):
        session.output.note("Nothing was changed.")
        raise typer.Exit(1)
