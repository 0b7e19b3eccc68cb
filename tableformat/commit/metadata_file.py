"""The content of a metadata file, for catalogs that keep metadata files themselves.

Every metadata file has all snapshots of its table and the log of `main`, to each of which a commit adds one: what was
written of the others before is written again as it is, since serialising ten thousand of them takes ten times as long
as the rest of a commit.

    {..., "snapshots":[<before>,<recent>], "snapshot-log":[<before>,<recent>]}
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final
from uuid import UUID

from cachetools import LRUCache
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from tableformat.metadata.snapshot_index import continues

GZIP_SUFFIX: Final = ".gz.metadata.json"
"""How readers know a compressed metadata file."""

_TABLES_MAX: Final = 16
_RECENT_BYTES_MAX: Final = 256 * 1024
"""What is joined anew for each metadata file; the texts before it are not copied."""
_GROWING: Final = {"snapshots": b"snapshots", "snapshot_log": b"snapshot-log"}
"""The lists that all commits add to, by the names of the model and of the file."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A list of a metadata file, and its JSON. Models are frozen, and those of a table as it was are shared by its next
    version: the same object has the same text."""

    items: Sequence[IcebergBaseModel]
    texts: list[bytes]
    before: bytes
    """The JSON of the older items."""
    recent: bytes
    """That of the others."""

    def next(self, items: Sequence[IcebergBaseModel]) -> _Written:
        """That of the next metadata file."""
        if not continues(self.items, items):
            known = dict(zip(map(id, self.items), self.texts, strict=True))
            texts = [known.get(id(item)) or _text(item) for item in items]
            return _Written(items, texts, b",".join(texts), b"")
        added = [_text(item) for item in items[len(self.items) :]]
        texts = [*self.texts, *added]
        if len(self.recent) + sum(map(len, added)) > _RECENT_BYTES_MAX:
            return _Written(items, texts, b",".join(texts), b"")
        return _Written(items, texts, self.before, b",".join([self.recent, *added] if self.recent else added))

    @property
    def json(self) -> tuple[bytes, ...]:
        """The items in parts, separated and without brackets."""
        return (self.before, b",", self.recent) if self.before and self.recent else (self.before, self.recent)


_written: Final[LRUCache[tuple[UUID | None, str], _Written]] = LRUCache(_TABLES_MAX * len(_GROWING))
"""The lists of the last metadata file of each table, by its UUID."""
_lock: Final = Lock()


def metadata_parts(metadata: TableMetadata, location: str) -> tuple[bytes, ...]:
    """The metadata file's content in parts, compressed when its name says so."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    # The base class's method: PyIceberg 0.12 blocks it for version 3, though the model holds all of that version's
    # fields.
    rest = IcebergBaseModel.model_dump_json(metadata, exclude=set(_GROWING)).encode()
    parts = [rest.removesuffix(b"}")]
    for field, name in _GROWING.items():
        parts += (b',"%b":[' % name, *_list(metadata, field), b"]")
    parts.append(b"}")
    if location.endswith(GZIP_SUFFIX):
        return (gzip.compress(b"".join(parts), mtime=0),)
    return tuple(parts) if sum(map(len, parts)) > _RECENT_BYTES_MAX else (b"".join(parts),)


def _list(metadata: TableMetadata, field: str) -> tuple[bytes, ...]:
    of_table = (metadata.table_uuid, field)
    with _lock:
        before = _written.get(of_table, _Written([], [], b"", b""))
    written = before.next(getattr(metadata, field))
    with _lock:
        _written[of_table] = written
    return written.json


def _text(item: IcebergBaseModel) -> bytes:
    return item.model_dump_json().encode()
