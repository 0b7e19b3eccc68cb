"""Formats numbers, sizes and durations in the same way for the command line, for reprs and for pages."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

_QUIET: Final = frozenset(
    {"snapshot_id", "previous_snapshot_id", "rounds", "listed_files_count", "clean_data_files_count"}
)
"""Fields of results that count what was examined, not what was done."""
_UNITS: Final = ("KB", "MB", "GB", "TB", "PB")


def count(number: int) -> str:
    """A whole number with thousands separators."""
    return f"{number:,}"


def told_figures(result: Any) -> str:
    """The figures of a job's result that are not zero, with the names of its fields."""
    told = []
    for field in fields(result):
        value = getattr(result, field.name)
        if field.name in _QUIET or isinstance(value, bool) or not isinstance(value, int) or not value:
            continue
        noun = field.name.removesuffix("_count").removesuffix("_bytes").replace("_", " ")
        if field.name.endswith("_bytes"):
            told.append(f"{noun} {size(value)}")
        else:
            told.append(f"{noun}{'' if noun.endswith('s') else 's'} {value:,}")
    return ", ".join(told) or "nothing to do"


def counted(number: int, noun: str) -> str:
    """`1 data file`, `2 data files`; the plural ends in s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(byte_count: int) -> str:
    """Bytes in the unit that needs at most four digits, in steps of 1,000."""
    if byte_count < 1_000:
        return f"{byte_count} B"
    amount = float(byte_count)
    for unit in _UNITS:
        amount /= 1_000
        if round(amount, 1) < 1_000 or unit == _UNITS[-1]:
            return f"{amount:.1f} {unit}"
    raise AssertionError("the last unit takes every size")


def seconds(duration_seconds: float) -> str:
    """A duration; below one second in milliseconds."""
    if duration_seconds < 1:
        return f"{duration_seconds * 1_000:.0f} ms"
    return f"{duration_seconds:,.1f} s"


def age(duration_seconds: float) -> str:
    """An age, in the unit with the fewest digits."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if duration_seconds >= length:
            return f"{duration_seconds / length:,.1f} {unit}"
    return f"{duration_seconds:.0f} s"
