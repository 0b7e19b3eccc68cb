"""Files that were damaged after they were written are detected (DA-11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.deletes.codecs import packed_spans
from tableformat.errors import CorruptFileError, InvalidArgumentError
from tableformat.merge_on_read.delete_loader import DeleteCaches, DeleteLoader
from tableformat.metadata.content_file import DeleteFile
from tableformat.parquet.parquet_file import plain_parquet
from tableformat.scan.context import merge_context
from tableformat.storage.location import local_path
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples

VERIFY = {"read.parquet.page-checksum-verification": "true"}


def deleted_in(directory: Path, kind: str) -> tf.Table:
    """A table with one delete file of the kind, and nothing of it in its manifest entry but bounds."""
    table = keyed_table(directory)
    table.append(rows("a", range(40)))
    match kind:
        case "position":
            table.delete(where="id2 IN (3, 4, 17, 38)", mode="scan")
        case "equality":
            table.delete_rows([{"id1": "a", "id2": number} for number in (3, 4, 17, 38)])
        case "range":
            table.delete_prefix([{"id1": "a", "id2": number} for number in (3, 4, 17, 20, 30, 38)])
    return table


def read_deletes(table: tf.Table, delete: DeleteFile) -> object:
    """The content that a scan reads from the delete file, in a form that can be compared."""
    loader = DeleteLoader.of(table.metadata, table.iceberg.io, DeleteCaches())
    match delete.kind.value:
        case "position":
            (data,) = live_data_files(table)
            return loader.positions(delete, data.file_path).to_array().tolist()
        case "equality":
            fields = merge_context(table.view).fields
            types = {field_id: fields[field_id].field_type for field_id in delete.equality_ids}
            columns = loader.delete_columns(delete, tuple(sorted(types)), types)
            return [column.to_pylist() for column in columns]
        case _:
            spans = loader._stored_spans([delete])[0]
            return spans.lower.encoded.to_pylist(), spans.upper.encoded.to_pylist(), spans.sequence_numbers.tolist()


@pytest.mark.parametrize("kind", ["position", "equality", "range"])
def test_bit_flip_in_delete_file_page_never_restores_rows(tmp_path: Path, kind: str) -> None:
    """DA-11: every byte before the footer, three bits each: the same deletes, or an error that names the file."""
    table = deleted_in(tmp_path, kind)
    (delete,) = live_delete_files(table)
    path = Path(local_path(delete.file_path))
    whole = path.read_bytes()
    expected = read_deletes(table, delete)
    footer_start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    wrong = []
    refused = 0
    for place in range(footer_start):
        for bit in (0, 4, 7):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                if read_deletes(table, delete) != expected:
                    wrong.append((place, bit))
            except CorruptFileError as error:
                refused += error.location == delete.file_path
    assert wrong == []
    assert refused > footer_start


@pytest.mark.parametrize("kind", ["position", "equality", "range"])
def test_delete_file_row_count_mismatch_is_corrupt(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-11: a footer that leaves out a row."""
    monkeypatch.setattr(packed_spans, "MAX_SPANS", 0)
    table = deleted_in(tmp_path, kind)
    (delete,) = live_delete_files(table)
    path = Path(local_path(delete.file_path))
    shorter = pq.read_table(pa.BufferReader(plain_parquet(path.read_bytes()))).slice(1)
    pq.write_table(shorter, path, store_schema=False)
    path.write_bytes(path.read_bytes().ljust(delete.file_size_bytes, b" "))
    with pytest.raises(CorruptFileError, match=path.name):
        live_tuples(table)


def page_bytes(path: Path) -> Iterator[int]:
    """The last byte of every column chunk: part of a value."""
    metadata = pq.read_metadata(pa.BufferReader(plain_parquet(path.read_bytes())))
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            yield (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1


def assert_all_pages_have_checksums(path: Path) -> None:
    whole = plain_parquet(path.read_bytes())
    for place in page_bytes(path):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        with pytest.raises(OSError, match="CRC"):
            pq.ParquetFile(pa.BufferReader(bytes(damaged)), page_checksum_verification=True).read()


def test_written_parquet_files_have_page_checksums(tmp_path: Path) -> None:
    """DA-11: appends, all kinds of deletes, the output of compaction and of conversion."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(40)))
    table.delete(where="id2 IN (3, 4)", mode="scan")
    table.delete_rows([{"id1": "a", "id2": 5}])
    table.delete_prefix({"id1": "a", "id2": 6})
    table.maintenance.merge_range_deletes()
    table.maintenance.convert_deletes()
    table.maintenance.compact(min_input_files=1, delete_ratio_threshold=0.01)
    paths = sorted(Path(local_path(table.location)).rglob("*.parquet"))
    assert len(paths) >= 5
    for path in paths:
        assert_all_pages_have_checksums(path)


@pytest.mark.parametrize("kind", ["none", "position", "equality", "range"])
def test_data_file_checksums_are_verified_if_configured(tmp_path: Path, kind: str) -> None:
    """DA-11: a scan, and the jobs that would write the damage into new files."""
    table = deleted_in(tmp_path, kind)
    (data,) = live_data_files(table)
    path = Path(local_path(data.file_path))
    damaged = bytearray(path.read_bytes())
    damaged[max(page_bytes(path))] ^= 1
    path.write_bytes(damaged)
    table.set_properties(**VERIFY)
    table = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    with pytest.raises(CorruptFileError, match=path.name):
        live_tuples(table)
    if kind != "none":
        with pytest.raises(CorruptFileError, match=path.name):
            table.maintenance.compact(min_input_files=1, delete_ratio_threshold=0.0001)


def test_checksum_property_accepts_only_true_and_false(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    with pytest.raises(InvalidArgumentError, match="must be one of false, true, not 'yes'"):
        table.set_properties({"read.parquet.page-checksum-verification": "yes"})


def test_files_without_checksums_are_read(tmp_path: Path) -> None:
    """DA-11: other writers leave them out."""
    table = keyed_table(tmp_path, properties=VERIFY)
    table.iceberg.append(rows("a", range(3)))
    assert live_tuples(table.refresh()) == [("a", number, "x") for number in range(3)]
