"""Creates many frozen dataclass objects from columns of their fields, in a third of the time of their constructors."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final, TypeVar

_Object = TypeVar("_Object")
_MANY: Final = 10_000
"""The number of objects from which garbage collection is paused. It would repeatedly walk objects that are in use."""


def objects_of(kind: type[_Object], count: int, columns: dict[str, Iterable[Any]]) -> list[_Object]:
    """Create `count` objects of a dataclass with slots and without `__post_init__`, from one column for each field.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int
    >>> objects_of(Point, 2, {"x": [1, 2], "y": [3, 4]})
    [Point(x=1, y=3), Point(x=2, y=4)]
    """
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    assert names == columns.keys(), f"{kind.__name__} has the fields {sorted(names)}, not {sorted(columns)}"
    with no_collection(count):
        made = [object.__new__(kind) for _ in range(count)]
        for name, values in columns.items():
            # Python's fastest loop: every step runs in C.
            deque(map(getattr(kind, name).__set__, made, values), maxlen=0)
    return made


@contextmanager
def no_collection(count: int) -> Iterator[None]:
    """Pause garbage collection while about this many objects are created."""
    if count < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
