"""Parses the age from which snapshots or files expire, as callers give it."""

from __future__ import annotations

from datetime import datetime, timedelta

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.snapshot_choice import to_epoch_ms


def older_than_ms(older_than: datetime | timedelta | str | int, now_ms: int) -> int:
    """The time in milliseconds since 1970 before which something expires. A timedelta is an age."""
    if not isinstance(older_than, timedelta):
        return to_epoch_ms(older_than, "older_than")
    if older_than < timedelta(0):
        raise InvalidArgumentError(f"older_than must be an age of zero or more, not {older_than!r}.")
    return now_ms - older_than // timedelta(milliseconds=1)
