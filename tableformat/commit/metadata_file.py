"""The content of a metadata file, for catalogs that keep metadata files themselves.

Every metadata file has all snapshots of its table, and a commit adds one: what was written of the others before is
joined, since serialising ten thousand of them takes ten times as long as the rest of a commit.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from threading import Lock
from typing import Final

from cachetools import LRUCache
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import IcebergBaseModel

GZIP_SUFFIX: Final = ".gz.metadata.json"
"""How readers know a compressed metadata file."""

_TABLES_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class _Written:
    """The snapshots of a metadata file, and their JSON one by one and joined. Models are frozen, and those of a table
    as it was are shared by its next version: the same object has the same text."""

    snapshots: Sequence[Snapshot]
    texts: list[bytes]
    joined: bytes

    def next(self, snapshots: Sequence[Snapshot]) -> _Written:
        """Those of the next metadata file."""
        kept = len(self.snapshots)
        if kept <= len(snapshots) and all(map(is_, self.snapshots, snapshots)):
            added = [_text(snapshot) for snapshot in snapshots[kept:]]
            joined = b",".join([self.joined, *added] if kept else added)
            return _Written(snapshots, [*self.texts, *added], joined)
        known = dict(zip(map(id, self.snapshots), self.texts, strict=True))
        texts = [known.get(id(snapshot)) or _text(snapshot) for snapshot in snapshots]
        return _Written(snapshots, texts, b",".join(texts))


_written: Final[LRUCache[str, _Written]] = LRUCache(_TABLES_MAX)
"""The last metadata file of each table, by UUID."""
_lock: Final = Lock()


def metadata_bytes(metadata: TableMetadata, location: str) -> bytes:
    """The metadata file's content, compressed when its name says so."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    # The base class's method: PyIceberg 0.12 blocks it for version 3, though the model holds all of that version's
    # fields.
    rest = IcebergBaseModel.model_dump_json(metadata, exclude={"snapshots"}).encode()
    text = b'%b,"snapshots":[%b]}' % (rest.removesuffix(b"}"), _snapshots(metadata))
    return gzip.compress(text, mtime=0) if location.endswith(GZIP_SUFFIX) else text


def _snapshots(metadata: TableMetadata) -> bytes:
    table = str(metadata.table_uuid)
    with _lock:
        before = _written.get(table, _Written([], [], b""))
    written = before.next(metadata.snapshots)
    with _lock:
        _written[table] = written
    return written.joined


def _text(snapshot: Snapshot) -> bytes:
    return snapshot.model_dump_json().encode()
