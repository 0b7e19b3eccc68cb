"""A progress bar in interactive sessions: HTML in a notebook, a line of text at a prompt. Scripts show nothing."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any, Final, Protocol

from tableformat.markup import html

_FIRST_AFTER_SECONDS: Final = 1.0
"""Calls that are shorter show nothing."""
_NEXT_AFTER_SECONDS: Final = 0.2
_CELLS: Final = 24
_CLEAR_LINE: Final = "\r\x1b[K"


def ipython() -> Any:
    """The running IPython, of a notebook or a prompt; None outside of IPython."""
    package = sys.modules.get("IPython")
    return None if package is None else package.get_ipython()


def session_bar() -> SessionBar | None:
    """A bar for one call; None if the process is not an interactive session."""
    shell = ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return SessionBar(_Notebook())
    is_prompt = shell is not None or hasattr(sys, "ps1")
    return SessionBar(_Prompt()) if is_prompt and sys.stderr is not None and sys.stderr.isatty() else None


class _Surface(Protocol):
    """Where a bar is drawn."""

    def draw(self, done: int, total: int, what: str) -> None:
        """Replace what was drawn before."""

    def erase(self) -> None:
        """Remove what was drawn."""


class SessionBar:
    """Shows the progress of one call from its second second on, until `close`."""

    def __init__(self, surface: _Surface) -> None:
        self._surface = surface
        self._next = monotonic() + _FIRST_AFTER_SECONDS
        self._is_drawn = False

    def update(self, done: int, total: int, what: str) -> None:
        """`done` of `total` steps of the kind `what`."""
        if monotonic() < self._next:
            return
        self._surface.draw(done, total, what)
        self._is_drawn = True
        self._next = monotonic() + _NEXT_AFTER_SECONDS

    def close(self) -> None:
        """Remove the bar."""
        if self._is_drawn:
            self._surface.erase()


class _Prompt:
    def draw(self, done: int, total: int, what: str) -> None:
        filled = round(_CELLS * _share(done, total))
        self._write(f"{_CLEAR_LINE}{'━' * filled}{' ' * (_CELLS - filled)} {done:,} of {total:,} {what}")

    def erase(self) -> None:
        self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class _Notebook:
    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, done: int, total: int, what: str) -> None:
        bar = html.bar(_share(done, total), "#5b8def")
        self._show(html.part("<div>", bar, f" {done:,} of {total:,} {html.escaped(what)}</div>"))

    def erase(self) -> None:
        self._show("")

    def _show(self, text: str) -> None:
        display = sys.modules["IPython"].display
        if self._handle is None:
            self._handle = display.display(display.HTML(text), display_id=True)
        else:
            self._handle.update(display.HTML(text))


def _share(done: int, total: int) -> float:
    return min(done / total, 1.0) if total else 0.0
