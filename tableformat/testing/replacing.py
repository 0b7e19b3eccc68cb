"""Replaces a function of the library by another one, for tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock


@contextmanager
def replaced(original: Callable[..., Any], other: Callable[..., Any]) -> Iterator[None]:
    """Replace a function in every module of the library that holds it, since modules import names."""
    with ExitStack() as patches:
        for module in [module for name, module in sys.modules.items() if name.startswith("tableformat.")]:
            for name in [name for name, value in vars(module).items() if value is original]:
                patches.enter_context(mock.patch.object(module, name, other))
        yield


@contextmanager
def replaced_method(owner: type, name: str, other: Callable[..., Any]) -> Iterator[None]:
    """Replace a method of a class."""
    with mock.patch.object(owner, name, other):
        yield
