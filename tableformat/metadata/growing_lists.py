"""The lists of a metadata file that every commit appends to, kept with their JSON.

    {..., "snapshots":[<before>,<recent>], "snapshot-log":[<before>,<recent>]}

Every metadata file contains all snapshots of its table and the log of `main`, so it repeats nearly all of the file
before it. To serialize ten thousand snapshots takes ten times as long as the rest of a commit, and to parse them as
long again. The JSON of the items that are known is therefore reused by the next file that is written, and their models
by the next file that is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.typedef import IcebergBaseModel

from tableformat.metadata.snapshot_index import continues
from tableformat.storage.bounded_cache import BoundedCache

GROWING: Final = {"snapshots": b"snapshots", "snapshot_log": b"snapshot-log"}
"""The name of each list in the model, and in the file."""
RECENT_BYTES_MAX: Final = 256 * 1024
"""The part that is concatenated again for each metadata file; the texts before it are not copied."""
TABLES_MAX: Final = 16

_TABLE_UUID: Final = re.compile(rb'"table-uuid":"([0-9a-f-]{36})"')


@dataclass(frozen=True, slots=True)
class GrowingList:
    """A list of a metadata file, and its JSON. Models are frozen, and the next version of a table shares the models of
    the current one, so the same object has the same text."""

    items: Sequence[IcebergBaseModel] = ()
    texts: Sequence[bytes] = ()
    before: bytes = b""
    """The JSON of the older items."""
    recent: bytes = b""
    """The JSON of the recent items."""

    @property
    def separator(self) -> bytes:
        """The separator between the two texts."""
        return b"," if self.before and self.recent else b""

    def next(self, items: Sequence[IcebergBaseModel]) -> GrowingList:
        """The list of the next metadata file."""
        if not continues(self.items, items):
            known = dict(zip(map(id, self.items), self.texts, strict=True))
            texts = [known.get(id(item)) or _text(item) for item in items]
            return GrowingList(items, texts, b",".join(texts))
        added = [_text(item) for item in items[len(self.items) :]]
        texts = [*self.texts, *added]
        if len(self.recent) + sum(map(len, added)) > RECENT_BYTES_MAX:
            return GrowingList(items, texts, b",".join(texts))
        return GrowingList(items, texts, self.before, b",".join([self.recent, *added] if self.recent else added))

    def known_at(self, document: bytes, start: int) -> tuple[list[IcebergBaseModel], int]:
        """The known items with which the JSON list at `start` begins, and the end of their text. Older items may be
        missing in the document because they have expired."""
        after = start + len(self.before)
        recent = self.separator + self.recent
        if document.startswith(self.before, start) and document.startswith(recent, after):
            end = after + len(recent)
            return list(self.items), end + document.startswith(b",", end)
        found, end = [], start
        for item, text in zip(self.items, self.texts, strict=True):
            if document.startswith(text, end):
                found.append(item)
                end += len(text)
                if not document.startswith(b",", end):
                    break
                end += 1
        return found, end


_lists: Final[BoundedCache[tuple[UUID | None, str], GrowingList]] = BoundedCache(TABLES_MAX * len(GROWING))
"""The lists of the metadata file of each table that was read or written last, by its UUID."""


def next_list(metadata: TableMetadata, field: str) -> GrowingList:
    """A list of the metadata, with its JSON."""
    known = _lists.get((metadata.table_uuid, field)) or GrowingList()
    current = known.next(getattr(metadata, field))
    _lists.put((metadata.table_uuid, field), current, 1)
    return current


def parse_metadata(document: bytes) -> TableMetadata:
    """The metadata in the JSON of a metadata file. Only the items that are not known are parsed.

    Raises what PyIceberg raises for JSON that is not table metadata.
    """
    uuid = _TABLE_UUID.search(document)
    table_uuid = None if uuid is None else UUID(uuid[1].decode())
    found: dict[str, list[IcebergBaseModel]] = {}
    for field, name in GROWING.items():
        known, key = _lists.get((table_uuid, field)), b'"%b":[' % name
        # In a text of JSON the quotation marks are escaped, so the key of a list is nowhere else.
        if known is not None and document.count(key) == 1:
            start = document.index(key) + len(key)
            found[field], end = known.known_at(document, start)
            document = document[:start] + document[end:]
    metadata = TableMetadataUtil.parse_raw(document.decode())
    if any(found.values()):
        lists = {field: [*items, *getattr(metadata, field)] for field, items in found.items()}
        metadata = metadata.model_copy(update=lists)
    for field in GROWING:
        # Most tables are read once. From the second time on, their items are kept.
        if _lists.get((metadata.table_uuid, field)) is None:
            _lists.put((metadata.table_uuid, field), GrowingList(), 1)
        else:
            next_list(metadata, field)
    return metadata


def _text(item: IcebergBaseModel) -> bytes:
    return item.model_dump_json().encode()
