"""Shows the progress of jobs in notebooks and at prompts (MT-62)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tableformat.maintenance.running.progress import silent
from tableformat.markup.session_bar import session_bar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Kind = TypeVar("_Kind", bound=type)


def shows_progress(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """MT-62: in notebooks and at prompts, a call without a callback shows a progress bar."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        bar = None if kwargs.get("progress") is not None else session_bar()
        if bar is None:
            return method(*args, **kwargs)

        def progress(done: int, total: int, what: str) -> None:
            silent(done, total, what)
            bar.update(done, total, what)

        kwargs["progress"] = progress
        try:
            return method(*args, **kwargs)
        finally:
            bar.close()

    return call


def jobs_show_progress(kind: _Kind) -> _Kind:
    """A class decorator: the public methods with a parameter `progress` show their progress in interactive sessions."""
    for name, member in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(member) and _has_progress(member):
            setattr(kind, name, shows_progress(member))
    return kind


def _has_progress(method: Callable[..., Any]) -> bool:
    return "progress" in inspect.signature(method).parameters
