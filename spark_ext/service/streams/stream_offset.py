"""Offsets of a stream: how far it has read, as Spark keeps it in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tableformat.errors import UnsupportedFeatureError

_VERSION: Final = 1
BEGIN: Final[Mapping[str, Any]] = {"version": _VERSION, "begin": True}
"""Before anything: where that is, the first batch decides by the options, and its end records it."""


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Everything before a place in the history of a branch."""

    snapshot_id: int | None
    """The last snapshot of which anything was read; None before the table's first one."""
    file_index: int | None = None
    """How many files of that snapshot were read; None for all."""
    is_initial: bool = False
    """Whether they are counted among all files of the table at the snapshot, not only those that it added."""

    def to_json(self, since: StreamOffset | None = None) -> dict[str, Any]:
        """`since` is where the first batch began: run again, it must begin there, whatever was committed meanwhile."""
        described = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "file_index": self.file_index,
            "is_initial": self.is_initial,
        }
        return described if since is None else {**described, "since": since.to_json()}

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> StreamOffset | None:
        """None for BEGIN. Raises UnsupportedFeatureError for what another version of this library wrote."""
        if offset.get("version") != _VERSION:
            raise UnsupportedFeatureError(
                f"the checkpoint of the stream has offsets of form {offset.get('version')!r}, and this version of the "
                f"library reads form {_VERSION}. Use the version that wrote it, or start with a new checkpoint."
            )
        if offset.get("begin"):
            return None
        return cls(offset["snapshot_id"], offset["file_index"], offset["is_initial"])


def batch_start(start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamOffset:
    """SS-2, SS-4: where a batch that was planned begins."""
    offset = StreamOffset.from_json(start) or StreamOffset.from_json(end["since"])
    assert offset is not None, "a batch never ends where it begins"
    return offset
