"""A table of very many data files that do not exist: only metadata, clustered by key, created in seconds.

The library writes one manifest of 10,000 entries. The others are copies of its records. In each copy, the beginning of
every key and path is replaced by another one of the same length.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from nine_million_rows import KEY_FIELD_IDS, adopt, new_table
from pyiceberg.types import DateType, IntegerType, LongType, PrimitiveType, StringType

import tableformat as tf
from tableformat.commit.committed_once import files_gone
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.manifests import manifest_list
from tableformat.metadata.manifests.avro_container import header_bytes, read_container
from tableformat.metadata.manifests.manifest_entry import ColumnSummary, ManifestContent, ManifestFile
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.testing.replacing import replaced

FILES_PER_MANIFEST: Final = 10_000
_DATES: Final = range(4, 8)
_SYNC: Final = bytes(range(16))


def partner(number: int) -> str:
    """The first key column of the file of that number; file i holds partner i alone."""
    return f"partner-{number:08}"


def entries(count: int) -> Iterator[DataFile]:
    """Entries as a writer of the demo's schema leaves them, with metrics of all seven columns."""
    random = Random(count)
    for number in range(count):
        lower = _bounds((partner(number), 0, 1)) | {column: _date(random.randrange(20_000)) for column in _DATES}
        upper = _bounds((partner(number), 39, 15)) | {
            column: _date(20_000 + random.randrange(9_000)) for column in _DATES
        }
        yield DataFile(
            file_path=f"file:///not/there/data/0000-{UUID(int=random.getrandbits(128))}.parquet",
            file_format=PARQUET,
            spec_id=0,
            record_count=600,
            file_size_bytes=9_000 + random.randrange(5_000),
            column_sizes={column: random.randrange(2_000) for column in range(1, 8)},
            value_counts=dict.fromkeys(range(1, 8), 600),
            null_value_counts={**dict.fromkeys(KEY_FIELD_IDS, 0), **dict.fromkeys(_DATES, 300)},
            nan_value_counts={},
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=(4,),
            sort_order_id=1,
        )


def adopt_missing(table: tf.Table, data_files: Sequence[DataFile]) -> None:
    """Commit entries of files that do not exist, which an ordinary commit rejects (CP-55)."""
    with replaced(files_gone, lambda _io, _paths: []):
        adopt(table, data_files)


def table_of_many_files(directory: Path, file_count: int) -> tf.Table:
    """A table of `file_count` files, a multiple of `FILES_PER_MANIFEST`, in manifests clustered by key."""
    table = new_table(directory, **{"commit.manifest-merge.enabled": "false"})
    adopt_missing(table, list(entries(FILES_PER_MANIFEST)))
    (first,) = manifest_list.manifests_of(table.view)
    path = Path(first.manifest_path.removeprefix("file://"))
    container = read_container(path.read_bytes(), str(path))
    header = {name: text.decode() for name, text in container.metadata.items() if name != "avro.codec"}
    manifests = []
    for number in range(file_count // FILES_PER_MANIFEST):
        blocks = [(count, _renumbered(block, number)) for count, block in container.blocks]
        copy = path.with_name(f"copy-{number}-m0.avro")
        copy.write_bytes(_container(header_bytes(header), blocks))
        manifests.append(_described(first, copy, number))
    _write_list(table, manifests)
    return table


def _renumbered(block: bytes, number: int) -> bytes:
    return block.replace(b"partner-0000", b"partner-%04d" % number).replace(b"/data/0000-", b"/data/%04d-" % number)


def _container(header: bytes, blocks: list[tuple[int, bytes]]) -> bytes:
    parts = [header, _SYNC]
    for count, block in blocks:
        compressor = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
        compressed = compressor.compress(block) + compressor.flush()
        parts += (_long(count), _long(len(compressed)), compressed, _SYNC)
    return b"".join(parts)


def _described(first: ManifestFile, copy: Path, number: int) -> ManifestFile:
    low, high = number * FILES_PER_MANIFEST, (number + 1) * FILES_PER_MANIFEST - 1
    names = ColumnSummary(1, False, partner(low).encode(), partner(high).encode())
    return replace(
        first,
        manifest_path=f"file://{copy}",
        manifest_length_bytes=copy.stat().st_size,
        columns=(names,),
        min_sequence_number=1,
        sequence_number=1,
    )


def _write_list(table: tf.Table, manifests: list[ManifestFile]) -> None:
    """Replace the manifest list of the table's only snapshot."""
    snapshot = table.view.snapshot
    assert snapshot is not None
    assert {manifest.content for manifest in manifests} == {ManifestContent.DATA}
    os.remove(snapshot.manifest_list.removeprefix("file://"))
    manifest_list.write_manifest_list(
        table.view.io,
        snapshot.manifest_list,
        manifests=manifests,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=1,
        format_version=2,
    )
    manifest_list._cache = BoundedCache(manifest_list.CACHED_MANIFESTS)  # type: ignore[misc]


def _bounds(key: tuple[str, int, int]) -> dict[int, bytes]:
    types: tuple[PrimitiveType, ...] = (StringType(), LongType(), IntegerType())
    return {
        field_id: to_bound(value, data_type)
        for field_id, value, data_type in zip(KEY_FIELD_IDS, key, types, strict=True)
    }


def _date(day: int) -> bytes:
    return to_bound(day, DateType())


def _long(value: int) -> bytes:
    rest, encoded = value << 1, bytearray()
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
