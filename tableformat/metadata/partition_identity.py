"""The identity of the partitions of a spec."""

from __future__ import annotations

from typing import Any

from tableformat.metadata.content_file import ContentFile


def partition_of(file: ContentFile) -> tuple[int, tuple[Any, ...]]:
    """DA-3: the identity of a partition as a dictionary key: the spec and the values.

    All NaNs are equal and -0.0 differs from 0.0. Python compares them the other way round, so they are converted to
    text.
    """
    return partition_identity(file.spec_id, file.partition)


def partition_identity(spec_id: int, values: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """DA-3: the identity of a partition of a spec; see `partition_of`."""
    if any(isinstance(value, float) for value in values):
        values = tuple(value.hex() if isinstance(value, float) else value for value in values)
    return spec_id, values
