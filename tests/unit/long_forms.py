"""The part of a parameter list or matrix that `make test` runs; the rest has the mark `long`, for `make test-long`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def every_other(values: Iterable[Any], first: int = 0) -> list[Any]:
    """All values; those between are long. Two tests that begin at 0 and at 1 share them."""
    return every(2, values, first)


def every(step: int, values: Iterable[Any], first: int = 0) -> list[Any]:
    """All values; only every `step`-th value from `first` on runs in `make test`, the others are long."""
    return [_case((value,), is_long=(place - first) % step != 0) for place, value in enumerate(values)]


def crossed(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """All pairs. The pairs that are not long contain each value of the longer list once, and values of the shorter list
    as often as needed."""
    width = min(len(some), len(others))
    return [
        _case((one, other), is_long=(place - number) % width != 0)
        for place, one in enumerate(some)
        for number, other in enumerate(others)
    ]


def _case(values: tuple[Any, ...], *, is_long: bool) -> Any:
    return pytest.param(*values, marks=[pytest.mark.long] if is_long else [])
