"""Replaces a function of the library by another one, for tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest import mock


@contextmanager
def replaced(original: Callable[..., Any], other: Callable[..., Any]) -> Iterator[None]:
    """Replace a function in every module of the library that has it, because modules import names.

    Also in modules that are loaded in the meantime; afterwards they have the original.
    """
    before = set(sys.modules)
    with ExitStack() as patches:
        for module, name in _holders(original, before):
            patches.enter_context(mock.patch.object(module, name, other))
        try:
            yield
        finally:
            for module, name in _holders(other, set(sys.modules) - before):
                setattr(module, name, original)


def _holders(function: Callable[..., Any], modules: Iterable[str]) -> list[tuple[ModuleType, str]]:
    """The given modules of the library that have the function, each with its name there."""
    ours = [sys.modules[module] for module in modules if module.startswith("tableformat.")]
    return [(module, name) for module in ours for name, value in vars(module).items() if value is function]


@contextmanager
def replaced_method(owner: type, name: str, other: Callable[..., Any]) -> Iterator[None]:
    """Replace a method of a class."""
    with mock.patch.object(owner, name, other):
        yield
