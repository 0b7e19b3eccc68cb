"""The content of a metadata file, for catalogs that keep metadata files themselves.

Every metadata file has all snapshots of its table and the log of `main`, to each of which a commit adds one: what was
written of the others before is written again as it is, since serialising ten thousand of them takes ten times as long
as the rest of a commit.

    {..., "snapshots":[<before>,<recent>], "snapshot-log":[<before>,<recent>]}

The same holds for compressing it, where the table's property asks for that.
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

    @property
    def separator(self) -> bytes:
        """What stands between the two."""
        return b"," if self.before and self.recent else b""

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


_written: Final[BoundedCache[tuple[UUID | None, str], _Written]] = BoundedCache(_TABLES_MAX * len(_GROWING))
"""The lists of the last metadata file of each table, by its UUID."""
_deflated: Final[BoundedCache[tuple[UUID | None, str], DeflatedText]] = BoundedCache(_TABLES_MAX * len(_GROWING))
"""The older items of these lists, compressed, where metadata files are."""


def metadata_parts(metadata: TableMetadata, location: str) -> tuple[bytes, ...]:
    """The metadata file's content in parts, compressed when its name says so."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    # The base class's method: PyIceberg 0.12 blocks it for version 3, though the model holds all of that version's
    # fields.
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
    """Lists come first, so that the checksum as far as the older snapshots, most of the file, stays what it was."""
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
