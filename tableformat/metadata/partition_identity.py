"""What tells one partition of a spec from another."""

from __future__ import annotations

from typing import Any

from tableformat.metadata.content_file import ContentFile


def partition_of(file: ContentFile) -> tuple[int, tuple[Any, ...]]:
    """DA-3: what identifies a partition, as a key of a dictionary: the spec and the values.

    All NaNs are one value, and -0.0 is not 0.0, which Python sees the other way round; as text they are.
    """
    return partition_identity(file.spec_id, file.partition)


def partition_identity(spec_id: int, values: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """DA-3: what identifies a partition of a spec; see `partition_of`."""
    if any(isinstance(value, float) for value in values):
        values = tuple(value.hex() if isinstance(value, float) else value for value in values)
    return spec_id, values
