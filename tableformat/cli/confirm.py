"""Asks for confirmation before a command removes something."""

from __future__ import annotations

import sys

import typer

from tableformat.cli.session import Session


def require_terminal(what: str) -> None:
    """A usage error if nobody can answer, instead of an invisible wait."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{what} There is no terminal to ask for confirmation; pass --yes to confirm.")


def ask(question: str, session: Session) -> None:
    """Ask, and continue if the answer is yes. If it is no, end the command with status 1; nothing is changed."""
    require_terminal(question)
    if not typer.confirm(question, err=True):
        session.output.note("Nothing was changed.")
        raise typer.Exit(1)
