"""The content of a metadata file, for catalogs that keep metadata files themselves.

The text of items that earlier files had is reused (`metadata/growing_lists.py`), and so are its compressed blocks if a
property of the table requests compression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from tableformat.commit.metadata_gzip import DeflatedText, GzipFile
from tableformat.metadata.growing_lists import GROWING, RECENT_BYTES_MAX, TABLES_MAX, GrowingList, next_list
from tableformat.storage.bounded_cache import BoundedCache

GZIP_SUFFIX: Final = ".gz.metadata.json"
"""Readers recognise a compressed metadata file by this suffix."""

_deflated: Final[BoundedCache[tuple[UUID | None, str], DeflatedText]] = BoundedCache(TABLES_MAX * len(GROWING))
"""The older items of these lists, compressed, for compressed metadata files."""


def metadata_parts(metadata: TableMetadata, location: str) -> tuple[bytes, ...]:
    """The content of the metadata file in parts, compressed if its name says so."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    # The base class's method: PyIceberg 0.12 blocks its own for version 3, although the model has all fields of that
    # version.
    rest = IcebergBaseModel.model_dump_json(metadata, exclude=set(GROWING)).encode()
    lists = {field: next_list(metadata, field) for field in GROWING}
    if location.endswith(GZIP_SUFFIX):
        return _compressed(metadata.table_uuid, lists, rest)
    parts = [rest.removesuffix(b"}")]
    for field, written in lists.items():
        parts += (b',"%b":[' % GROWING[field], written.before, written.separator, written.recent, b"]")
    parts.append(b"}")
    return tuple(parts) if sum(map(len, parts)) > RECENT_BYTES_MAX else (b"".join(parts),)


def _compressed(table_uuid: UUID, lists: Mapping[str, GrowingList], rest: bytes) -> tuple[bytes, ...]:
    """The compressed file. The lists come first, so that the checksum up to the older snapshots, which are most of the
    file, does not change."""
    file = GzipFile()
    file.add(b"{")
    for field, written in lists.items():
        file.add(b'"%b":[' % GROWING[field])
        known = _deflated.get((table_uuid, field)) or DeflatedText()
        deflated = file.add_kept(written.before, known)
        _deflated.put((table_uuid, field), deflated, 1)
        file.add(written.separator, written.recent, b"],")
    file.add(rest.removeprefix(b"{"))
    return file.finish()
