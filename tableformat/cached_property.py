"""A property whose value is computed on first access and stored in the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):  # noqa: N801  as the one of functools
    """CP-63: like `functools.cached_property`, which in Python 3.11 holds one lock for all objects while it computes. A
    plan that waits for a store would block the plans of all other tables, and a forked child would wait forever.

    This class has no lock. Threads that access the value for the first time concurrently may each compute it; all get
    the same object.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | _Value:
        if instance is None:
            return self
        # The stored value then hides this descriptor.
        value: _Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
