"""The content of a metadata file, for catalogs that keep metadata files themselves.

Every metadata file contains all snapshots of its table and the log of `main`, and each commit adds one item to both.
The text of the earlier items is kept and reused, because serialising ten thousand snapshots takes ten times as long as
the rest of a commit.

    {..., "snapshots":[<before>,<recent>], "snapshot-log":[<before>,<recent>]}

The same applies to compression, if a property of the table requests it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from tableformat.commit.metadata_gzip import DeflatedText, GzipFile
from tableformat.metadata.snapshot_index import continues
from tableformat.storage.bounded_cache import BoundedCache

GZIP_SUFFIX: Final = ".gz.metadata.json"
"""Readers recognise a compressed metadata file by this suffix."""

_TABLES_MAX: Final = 16
_RECENT_BYTES_MAX: Final = 256 * 1024
"""The part that is concatenated again for each metadata file; the texts before it are not copied."""
_GROWING: Final = {"snapshots": b"snapshots", "snapshot_log": b"snapshot-log"}
"""The lists that every commit appends to: name in the model -> name in the file."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A list of a metadata file, and its JSON. Models are frozen, and the next version of a table shares the models of
    the current one, so the same object has the same text."""

    items: Sequence[IcebergBaseModel]
    texts: list[bytes]
    before: bytes
    """The JSON of the older items."""
    recent: bytes
    """The JSON of the recent items."""

    @property
    def separator(self) -> bytes:
        """The separator between the two texts."""
        return b"," if self.before and self.recent else b""

    def next(self, items: Sequence[IcebergBaseModel]) -> _Written:
        """The list of the next metadata file."""
        if not continues(self.items, items):
            known = dict(zip(map(id, self.items), self.texts, strict=True))
            texts = [known.get(id(item)) or _text(item) for item in items]
            return _Written(items, texts, b",".join(texts), b"")
        added = [_text(item) for item in items[len(self.items) :]]
        texts = [*self.texts, *added]
        if len(self.recent) + sum(map(len, added)) > _RECENT_BYTES_MAX:
            return _Written(items, texts, b",".join(texts), b"")
        return _Written(items, texts, self.before, b",".join([self.recent, *added] if self.recent else added))


_written: Final[BoundedCache[tuple[UUID | None, str], _Written]] = BoundedCache(_TABLES_MAX * len(_GROWING))
"""The lists of the last metadata file of each table, by its UUID."""
_deflated: Final[BoundedCache[tuple[UUID | None, str], DeflatedText]] = BoundedCache(_TABLES_MAX * len(_GROWING))
"""The older items of these lists, compressed, for compressed metadata files."""


def metadata_parts(metadata: TableMetadata, location: str) -> tuple[bytes, ...]:
    """The content of the metadata file in parts, compressed if its name says so."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    # The base class's method: PyIceberg 0.12 blocks its own for version 3, although the model has all fields of that
    # version.
    rest = IcebergBaseModel.model_dump_json(metadata, exclude=set(_GROWING)).encode()
    lists = {field: _list(metadata, field) for field in _GROWING}
    if location.endswith(GZIP_SUFFIX):
        return _compressed(metadata.table_uuid, lists, rest)
    parts = [rest.removesuffix(b"}")]
    for field, written in lists.items():
        parts += (b',"%b":[' % _GROWING[field], written.before, written.separator, written.recent, b"]")
    parts.append(b"}")
    return tuple(parts) if sum(map(len, parts)) > _RECENT_BYTES_MAX else (b"".join(parts),)


def _compressed(table_uuid: UUID, lists: Mapping[str, _Written], rest: bytes) -> tuple[bytes, ...]:
    """The compressed file. The lists come first, so that the checksum up to the older snapshots, which are most of the
    file, does not change."""
    file = GzipFile()
    file.add(b"{")
    for field, written in lists.items():
        file.add(b'"%b":[' % _GROWING[field])
        known = _deflated.get((table_uuid, field)) or DeflatedText()
        deflated = file.add_kept(written.before, known)
        _deflated.put((table_uuid, field), deflated, 1)
        file.add(written.separator, written.recent, b"],")
    file.add(rest.removeprefix(b"{"))
    return file.finish()


def _list(metadata: TableMetadata, field: str) -> _Written:
    of_table = (metadata.table_uuid, field)
    before = _written.get(of_table) or _Written([], [], b"", b"")
    written = before.next(getattr(metadata, field))
    _written.put(of_table, written, 1)
    return written


def _text(item: IcebergBaseModel) -> bytes:
    return item.model_dump_json().encode()
