"""Deletion vectors as files, and the choice between them and position delete files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foreign_tables import VECTORS
from pyiceberg.partitioning import PartitionField
from pyiceberg.transforms import IdentityTransform
from v3_tables import ids, new_catalog, new_table, rows, vectors
from write_tables import context, files_under
from write_tables import rows as key_rows

from tableformat.deletes.codecs.deletion_vector import decode_vector, encode_vector
from tableformat.deletes.positions import PositionSet
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile, DeleteKind, FileContent
from tableformat.metadata.puffin import read_blob, read_footer
from tableformat.scan.context import merge_context
from tableformat.scan.planner import plan_scan
from tableformat.testing.table_files import live_data_files
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_data_files
from tableformat.write.delete_files import deletion_vectors
from tableformat.write.delete_files.deletion_vectors import write_deletion_vectors
from tableformat.write.delete_files.row_deletes import RowDeleteFiles, RowsToDelete, write_row_deletes


def at(*positions: int) -> PositionSet:
    return PositionSet.from_array(np.array(positions, np.int64))


def two_data_files(directory: Path) -> tuple[WriteContext, DataFile, DataFile]:
    """Two files in two partitions of a v3 table."""
    by_id1 = PartitionField(1, 1000, IdentityTransform(), "id1")
    ctx = context(directory, by_id1, format_version=3)
    first, second = write_data_files(ctx, key_rows(("a", 1, 1), ("a", 1, 2), ("b", 1, 1), ("b", 1, 2))).data_files
    return ctx, first, second


def test_vectors_of_several_data_files_share_a_puffin_file(tmp_path: Path) -> None:
    """FM-11, DA-7: each entry describes its blob as the footer does, with the spec and partition of the data file."""
    ctx, first, second = two_data_files(tmp_path)
    one, other = write_deletion_vectors(ctx, {first: at(1), second: at(0, 1)})
    assert one.file_path == other.file_path
    assert one.file_size_bytes == other.file_size_bytes == Path(one.file_path).stat().st_size
    footer = read_footer(ctx.io, one.file_path)
    for entry, data, blob, positions in zip(
        (one, other), (first, second), footer.blobs, (at(1), at(0, 1)), strict=True
    ):
        assert entry.kind is DeleteKind.DELETION_VECTOR
        assert (entry.content, entry.file_format) == (FileContent.POSITION_DELETES, "PUFFIN")
        assert entry.referenced_data_file == data.file_path
        assert (entry.spec_id, entry.partition) == (data.spec_id, data.partition)
        assert (entry.content_offset, entry.content_size_bytes) == (blob.offset, blob.length_bytes)
        assert entry.record_count == len(positions)
        assert (entry.sequence_number, entry.equality_ids, entry.lower_bounds) == (None, None, None)
        assert (blob.type, blob.fields, blob.compression_codec) == ("deletion-vector-v1", (2147483645,), None)
        assert (blob.snapshot_id, blob.sequence_number) == (-1, -1)
        assert blob.properties == {"referenced-data-file": data.file_path, "cardinality": str(len(positions))}
        content = read_blob(ctx.io, entry.file_path, offset=blob.offset, length_bytes=blob.length_bytes)
        assert decode_vector(content, entry.file_path) == positions


def test_vector_bytes_match_the_reference_implementation(tmp_path: Path) -> None:
    ctx, data, _ = two_data_files(tmp_path)
    (vector,) = write_deletion_vectors(ctx, {data: at(1, 3, 5, 7, 9)})
    content = Path(vector.file_path).read_bytes()
    assert vector.content_offset is not None
    assert vector.content_size_bytes is not None
    blob = content[vector.content_offset : vector.content_offset + vector.content_size_bytes]
    assert blob == (VECTORS / "alternating.bin").read_bytes()


def test_failing_later_file_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_vectors, "PUFFIN_BYTES", 1)
    ctx, first, second = two_data_files(tmp_path)
    before = files_under(tmp_path)

    def fail_on_second(positions: PositionSet) -> bytes:
        if len(positions) == 2:
            raise OSError("disk full")
        return encode_vector(positions)

    monkeypatch.setattr(deletion_vectors, "encode_vector", fail_on_second)
    with pytest.raises(OSError, match="disk full"):
        write_deletion_vectors(ctx, {first: at(0), second: at(0, 1)})
    assert files_under(tmp_path) == before


def test_v2_table_rejects_deletion_vectors(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    (data,) = write_data_files(ctx, key_rows(("a", 1, 1))).data_files
    with pytest.raises(UnsupportedFeatureError, match="format version 2 does not support deletion vectors"):
        write_deletion_vectors(ctx, {data: at(0)})


def deleted_again(directory: Path, version: int, *, fold: bool = False, upgrade: bool = False) -> RowDeleteFiles:
    """Rows 0 and 1 of a file with five rows are deleted by earlier commits; now row 4 is to be deleted as well."""
    table = new_table(new_catalog(directory), version)
    table.append(rows("a", 0, 1, 2, 3, 4))
    table.delete("id = 0", mode="scan")
    table.delete("id = 1", mode="scan")
    if upgrade:
        table.upgrade(3)
    (task,) = plan_scan(table.view).tasks
    ctx = WriteContext.of(table.metadata, table.iceberg.io)
    return write_row_deletes(ctx, [RowsToDelete(task, at(4))], merge_context(table.view), fold=fold)


def counts(files: RowDeleteFiles) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    return tuple(
        sorted((delete.file_format, delete.record_count) for delete in side) for side in (files.added, files.replaced)
    )  # type: ignore[return-value]


def test_v2_adds_another_position_delete_file(tmp_path: Path) -> None:
    assert counts(deleted_again(tmp_path, 2)) == ([("PARQUET", 1)], [])


def test_v2_merges_position_delete_files_on_request(tmp_path: Path) -> None:
    assert counts(deleted_again(tmp_path, 2, fold=True)) == ([("PARQUET", 3)], [("PARQUET", 1), ("PARQUET", 1)])


def test_v3_replaces_the_vector_by_a_superset(tmp_path: Path) -> None:
    """DA-7."""
    assert counts(deleted_again(tmp_path, 3)) == ([("PUFFIN", 3)], [("PUFFIN", 2)])


def test_first_vector_after_upgrade_merges_position_deletes(tmp_path: Path) -> None:
    """DA-7: if there is a vector, position delete files are not read, so the vector must contain their rows."""
    absorbed = deleted_again(tmp_path, 2, upgrade=True)
    assert counts(absorbed) == ([("PUFFIN", 3)], [("PARQUET", 1), ("PARQUET", 1)])


def test_already_deleted_rows_create_no_new_vector(tmp_path: Path) -> None:
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 0, 1, 2))
    table.delete("id = 1", mode="scan")
    (task,) = plan_scan(table.view).tasks
    ctx = WriteContext.of(table.metadata, table.iceberg.io)
    assert write_row_deletes(ctx, [RowsToDelete(task, at(1))], merge_context(table.view)) == RowDeleteFiles()


@pytest.mark.parametrize(("offset", "reason"), [(4, "states"), (8, "begins with"), (20, "checksum")])
def test_damaged_puffin_file_error_names_it(tmp_path: Path, offset: int, reason: str) -> None:
    """DA-8: never "no deletes"."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 0, 1, 2))
    table.delete("id = 1", mode="scan")
    (vector,) = vectors(table).values()
    path = Path(vector.file_path.removeprefix("file://"))
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)
    again = new_catalog(tmp_path).load_table("db.t")
    with pytest.raises(CorruptFileError, match=f"{path.name}.*{reason}"):
        again.scan().to_arrow()
    path.unlink()
    with pytest.raises(CorruptFileError, match=path.name):
        new_catalog(tmp_path).load_table("db.t").scan().to_arrow()


def test_delete_across_partitions_writes_one_puffin_file(tmp_path: Path) -> None:
    table = new_table(new_catalog(tmp_path), partition_by=["region"])
    table.append(rows("a", 1, 2, 3))
    table.append(rows("b", 1, 2, 3))
    result = table.delete("id = 2", mode="scan")
    assert result.deleted_row_count == 2
    shared = list(vectors(table).values())
    assert len({vector.file_path for vector in shared}) == 1
    assert {vector.partition for vector in shared} == {("a",), ("b",)}
    assert {vector.partition for vector in shared} == {data.partition for data in live_data_files(table)}
    table.delete("region = 'a' AND id = 3", mode="scan")
    # The vector of b stays in the shared file; the vector of a has moved.
    assert len({vector.file_path for vector in vectors(table).values()}) == 2
    assert ids(table) == [("a", 1), ("b", 1), ("b", 3)]
