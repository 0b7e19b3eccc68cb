"""Offsets of a stream: the position up to which it has read, as Spark stores it in the checkpoint of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tableformat.errors import UnsupportedFeatureError

_VERSION: Final = 1
BEGIN: Final[Mapping[str, Any]] = {"version": _VERSION, "begin": True}
"""The offset before anything was read. The first batch derives the actual start from the options, and records it in its
end."""


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in the history of a branch. Everything before it was read."""

    snapshot_id: int | None
    """The last snapshot that was read at least partly; None before the table's first one."""
    file_index: int | None = None
    """The number of files of that snapshot that were read; None for all."""
    is_initial: bool = False
    """Whether all files of the table at the snapshot are counted, not only the files that it added."""

    def to_json(self, since: StreamOffset | None = None) -> dict[str, Any]:
        """`since` is the start of the first batch. If the batch is repeated, it must start there, independent of
        concurrent commits."""
        described = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "file_index": self.file_index,
            "is_initial": self.is_initial,
        }
        return described if since is None else {**described, "since": since.to_json()}

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> StreamOffset | None:
        """The offset; None for BEGIN. Raises UnsupportedFeatureError for an offset of an incompatible version of this
        library."""
        if offset.get("version") != _VERSION:
            raise UnsupportedFeatureError(
                f"the checkpoint of the stream has offsets of version {offset.get('version')!r}, but this version of "
                f"the library reads version {_VERSION}. Use the version that wrote it, or start with a new "
                "checkpoint."
            )
        if offset.get("begin"):
            return None
        return cls(offset["snapshot_id"], offset["file_index"], offset["is_initial"])


def batch_start(start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamOffset:
    """SS-2, SS-4: the start of a planned batch."""
    offset = StreamOffset.from_json(start) or StreamOffset.from_json(end["since"])
    assert offset is not None, "a batch is not empty"
    return offset
