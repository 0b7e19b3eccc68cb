"""Commands that a page tells: one line each however narrow the screen is, since they are pasted into a shell."""

from __future__ import annotations

from rich.text import Text


def command_line(command: str) -> Text:
    """The command, indented, and never wrapped."""
    return Text(f"    {command}", style="cyan", no_wrap=True, overflow="ignore")
