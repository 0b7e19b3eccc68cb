"""Renders commands on one line each, even on a narrow screen, because users paste them into a shell."""

from __future__ import annotations

from rich.text import Text


def command_line(command: str) -> Text:
    """The command, indented and never wrapped."""
    return Text(f"    {command}", style="cyan", no_wrap=True, overflow="ignore")
