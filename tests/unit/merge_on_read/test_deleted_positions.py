"""All deletes of a data file as positions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, ListType, LongType, NestedField, StringType, StructType
from resolve_tables import context_of, data_file, delete_file, with_ids, write

from tableformat.deletes.codecs.deletion_vector import encode_vector
from tableformat.deletes.codecs.range_file import spans_to_parquet_table
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds, spans_of_prefixes
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read import delete_loader, equality_positions
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DeleteFile
from tableformat.metadata.puffin import deletion_vector_metadata, encode_puffin
from tableformat.parquet.parquet_file import OpenedFile

SCHEMA = Schema(
    NestedField(1, "id1", StringType(), required=True),
    NestedField(2, "id2", LongType(), required=True),
    NestedField(3, "num", IntegerType(), required=True),
    NestedField(4, "value", DoubleType()),
    schema_id=0,
)
KEY = KeyColumns.of(SCHEMA, (1, 2, 3))
ROWS = [(f"c{first}", second, third) for first in range(6) for second in range(5) for third in range(4)]


def key_table(rows: list[tuple[str, int, int]]) -> pa.Table:
    first, second, third = zip(*rows, strict=True)
    table = pa.table({"id1": pa.array(first), "id2": pa.array(second, pa.int64()), "num": pa.array(third, pa.int32())})
    return with_ids(table, [1, 2, 3])


def sorted_data(tmp_path: Path) -> Path:
    return write(tmp_path / "sorted.parquet", key_table(ROWS), sorted_by=(1, 2, 3), row_group_size=7)


def shuffled(tmp_path: Path) -> tuple[Path, list[tuple[str, int, int]]]:
    rows = ROWS.copy()
    random.Random(4).shuffle(rows)
    return write(tmp_path / "shuffled.parquet", key_table(rows), row_group_size=7), rows


def deleted(task: FileScanTask, context=None) -> list[int]:
    return deleted_positions(task, context or context_of(SCHEMA)).to_array().tolist()


def where(rows: list[tuple[str, int, int]], condition) -> list[int]:
    return [position for position, row in enumerate(rows) if condition(row)]


def prefixes(*rows: tuple[str, int]) -> SpanArray:
    return spans_of_prefixes(KEY, pa.table({"id1": [row[0] for row in rows], "id2": [row[1] for row in rows]}))


@pytest.fixture
def groups_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The field ids and row groups of each read call on a data file."""
    calls: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    read = OpenedFile.read

    def recording(self: OpenedFile, field_ids, row_groups):
        calls.append((tuple(field_ids), tuple(row_groups)))
        return read(self, field_ids, row_groups)

    monkeypatch.setattr(OpenedFile, "read", recording)
    return calls


def test_prefix_deletes_agree_on_sorted_and_unsorted_files(tmp_path: Path) -> None:
    """RD-5, RD-11"""
    wanted = {("c0", 0), ("c1", 3), ("c1", 4), ("c2", 0), ("c5", 4), ("c9", 1)}
    spans = prefixes(*wanted)
    path, rows = shuffled(tmp_path)
    expected = where(rows, lambda row: row[:2] in wanted)
    assert deleted(FileScanTask(data_file=data_file(path), range_deletes=(spans,))) == expected
    in_order = deleted(FileScanTask(data_file=data_file(sorted_data(tmp_path)), range_deletes=(spans,)))
    assert in_order == where(ROWS, lambda row: row[:2] in wanted)


def test_row_groups_decided_by_statistics_are_not_read(tmp_path: Path, groups_read) -> None:
    """RD-10: only what statistics cannot decide is read, and only columns that the span binds."""
    spans = span_of_bounds(KEY, ("c1", 2), ("c4",))
    task = FileScanTask(data_file=data_file(sorted_data(tmp_path)), range_deletes=(spans,))
    assert deleted(task) == where(ROWS, lambda row: ("c1", 2) <= row[:2] < ("c4", 0))
    # Row groups 2 and 5 of the 18 have two values of id1, so their statistics do not restrict id2.
    assert groups_read == [((1, 2), (2, 5, 11))]


def test_span_over_all_keys_reads_no_row_group(tmp_path: Path, groups_read) -> None:
    spans = span_of_bounds(KEY, None, None)
    assert deleted(FileScanTask(data_file=data_file(sorted_data(tmp_path)), range_deletes=(spans,))) == list(range(120))
    assert groups_read == []


def test_row_group_statistics_with_nulls_and_floats_hide_no_rows(tmp_path: Path) -> None:
    """RD-10: for row groups with nulls or NaN, only the facts that their statistics prove are used."""
    values = [None, None, 1.0, float("nan"), None, 5.0, -1.0, float("nan"), 3.0]
    table = with_ids(pa.table({"value": pa.array(values, pa.float64())}), [4])
    path = write(tmp_path / "x.parquet", table, row_group_size=2)
    key = KeyColumns.of(SCHEMA, (4,))
    for lower, upper, expected in [
        (None, (0.0,), [0, 1, 4, 6]),
        ((2.0,), None, [3, 5, 7, 8]),
        ((None,), (2.0,), [0, 1, 2, 4, 6]),
    ]:
        task = FileScanTask(data_file=data_file(path), range_deletes=(span_of_bounds(key, lower, upper),))
        assert deleted(task) == expected


def test_range_delete_files_are_loaded_if_task_has_no_spans(tmp_path: Path) -> None:
    """RD-2, RD-8: each span counts by its own number or the entry's, strictly above the data's."""
    files = []
    for number, spans in ((3, prefixes(("c0", 0), ("c1", 1))), (2, prefixes(("c2", 2)))):
        path = write(tmp_path / f"r{number}.parquet", spans_to_parquet_table(spans))
        files.append(
            delete_file(path, equality_ids=(1, 2, 3), file_format=RANGE_DELETES_PARQUET, sequence_number=number)
        )
    task = FileScanTask(data_file=data_file(sorted_data(tmp_path), sequence_number=2), range_delete_files=tuple(files))
    assert deleted(task) == where(ROWS, lambda row: row[:2] in {("c0", 0), ("c1", 1)})


def test_covering_range_delete_file_deletes_all_rows(tmp_path: Path) -> None:
    """RD-10"""
    path = write(tmp_path / "r.parquet", spans_to_parquet_table(span_of_bounds(KEY, None, None)))
    files = (delete_file(path, equality_ids=(1, 2, 3), file_format=RANGE_DELETES_PARQUET),)
    data = data_file(sorted_data(tmp_path))
    assert deleted(FileScanTask(data_file=data, range_delete_files=files)) == list(range(120))


def equality_task(tmp_path: Path, data, rows: pa.Table, ids: tuple[int, ...], **changes: object) -> FileScanTask:
    path = write(tmp_path / f"eq{'-'.join(map(str, ids))}.parquet", rows)
    return FileScanTask(data_file=data, equality_deletes=(delete_file(path, equality_ids=ids, **changes),))


@pytest.mark.parametrize("rows_per_key", [0, 10**9])
def test_equality_deletes_agree_by_search_and_by_lookup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_key: int
) -> None:
    """DA-2: the delete columns are a set; their order in the file means nothing."""
    monkeypatch.setattr(equality_positions, "_ROWS_PER_SEARCHED_KEY", rows_per_key)
    keys = key_table([("c1", 2, 0), ("c1", 2, 3), ("c5", 4, 1), ("c7", 0, 0), ("c1", 2, 0)])
    for ids in ((1, 2, 3), (2, 1), (3, 2)):
        rows = keys.select([field_id - 1 for field_id in ids])
        wanted = set(zip(*[rows.column(place).to_pylist() for place in range(len(ids))], strict=True))
        path, in_any_order = shuffled(tmp_path)
        for data, expected in ((sorted_data(tmp_path), ROWS), (path, in_any_order)):
            task = equality_task(tmp_path, data_file(data), rows, ids)
            assert deleted(task) == where(
                expected, lambda row, ids=ids, wanted=wanted: tuple(row[i - 1] for i in ids) in wanted
            )


def test_equality_deletes_skip_row_groups_by_bounds(tmp_path: Path, groups_read) -> None:
    rows = with_ids(pa.table({"id1": ["c2"]}), [1])
    path = write(tmp_path / "unsorted.parquet", key_table(ROWS), row_group_size=20)
    assert deleted(equality_task(tmp_path, data_file(path), rows, (1,))) == where(ROWS, lambda row: row[0] == "c2")
    assert groups_read == [((1,), (2,))]


def test_rows_written_with_their_equality_delete_are_kept(tmp_path: Path) -> None:
    """DA-2"""
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path), sequence_number=2), key_table(ROWS), (1, 2, 3))
    assert deleted(task) == []


@pytest.mark.parametrize("rows_per_key", [0, 10**9])
def test_only_newer_equality_keys_delete_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_key: int
) -> None:
    """DA-2: of a sorted file that is searched for its keys, too."""
    monkeypatch.setattr(equality_positions, "_ROWS_PER_SEARCHED_KEY", rows_per_key)
    deletes = tuple(
        delete_file(
            write(tmp_path / f"{number}.parquet", key_table([key])), equality_ids=(1, 2, 3), sequence_number=number
        )
        for number, key in ((5, ("c1", 2, 0)), (6, ("c1", 2, 3)))
    )
    data = data_file(sorted_data(tmp_path), sequence_number=5)
    assert deleted(FileScanTask(data_file=data, equality_deletes=deletes)) == where(ROWS, ("c1", 2, 3).__eq__)


@pytest.mark.parametrize("sorted_by", [(4,), None])
def test_zeros_and_nans_match_in_sorted_files(tmp_path: Path, sorted_by: tuple[int, ...] | None) -> None:
    """DA-5: -0.0 equals 0.0, and every NaN every NaN."""
    values = pa.table({"value": pa.array([-1.0, -0.0, 0.0, *[7.0] * 1000, float("nan")])})
    data = data_file(write(tmp_path / "x.parquet", with_ids(values, [4]), sorted_by=sorted_by))
    keys = with_ids(pa.table({"value": pa.array([0.0, float("nan")])}), [4])
    assert deleted(equality_task(tmp_path, data, keys, (4,))) == [1, 2, 1003]


def test_equality_deletes_with_different_column_sets_combine(tmp_path: Path) -> None:
    by_one = equality_task(tmp_path, data_file(sorted_data(tmp_path)), with_ids(pa.table({"x": ["c0"]}), [1]), (1,))
    by_two = equality_task(tmp_path, by_one.data_file, key_table([("c1", 1, 1)]).select([1, 2]), (2, 3))
    task = FileScanTask(data_file=by_one.data_file, equality_deletes=by_one.equality_deletes + by_two.equality_deletes)
    assert deleted(task) == where(ROWS, lambda row: row[0] == "c0" or row[1:] == (1, 1))


def test_delete_columns_match_by_field_id_after_rename(tmp_path: Path) -> None:
    """DA-6"""
    rows = with_ids(pa.table({"id2": ["c1"], "renamed": pa.array([3], pa.int64())}), [1, 2])
    expected = where(ROWS, lambda row: row[:2] == ("c1", 3))
    assert deleted(equality_task(tmp_path, data_file(sorted_data(tmp_path)), rows, (1, 2))) == expected


def test_a_promoted_column_is_compared_in_the_wider_type(tmp_path: Path) -> None:
    """DA-6: data written as int, deletes written as long, and the other way round."""
    wide = Schema(NestedField(3, "num", LongType(), required=True), schema_id=1)
    old, new = (
        with_ids(pa.table({"num": pa.array(values, kind)}), [3])
        for values, kind in (([1, 2, 3], pa.int32()), ([2**40, 2, 7], pa.int64()))
    )
    for data, deletes in ((old, new), (new, old)):
        task = equality_task(tmp_path, data_file(write(tmp_path / "data.parquet", data)), deletes, (3,))
        assert deleted(task, context_of(SCHEMA, wide)) == [1]


def test_delete_by_dropped_column_still_applies(tmp_path: Path) -> None:
    """DA-6"""
    current = Schema(NestedField(1, "id1", StringType(), required=True), schema_id=1)
    rows = with_ids(pa.table({"id2": pa.array([3], pa.int64())}), [2])
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path)), rows, (2,))
    assert deleted(task, context_of(SCHEMA, current)) == where(ROWS, lambda row: row[1] == 3)


@pytest.mark.parametrize(
    ("initial_default", "values", "is_deleted"),
    [(None, [None], True), (None, [7], False), (7, [7], True), (7, [None], False)],
)
def test_delete_by_column_missing_in_data_uses_default_or_null(
    tmp_path: Path, initial_default: int | None, values: list[int | None], is_deleted: bool
) -> None:
    """DA-6"""
    later = Schema(*SCHEMA.fields, NestedField(9, "added", LongType(), initial_default=initial_default), schema_id=1)
    rows = with_ids(pa.table({"added": pa.array(values, pa.int64())}), [9])
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path)), rows, (9,))
    assert deleted(task, context_of(SCHEMA, later)) == (list(range(120)) if is_deleted else [])
    spans = spans_of_prefixes(KeyColumns.of(later, (9, 1)), rows)
    by_range = FileScanTask(data_file=task.data_file, range_deletes=(spans,))
    assert deleted(by_range, context_of(SCHEMA, later)) == (list(range(120)) if is_deleted else [])


def test_identity_partition_value_replaces_missing_column(tmp_path: Path) -> None:
    """DA-6: files that were imported from directories hold no partition columns."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id1"), spec_id=3)
    path = write(tmp_path / "x.parquet", key_table(ROWS).select([1, 2]))
    rows = key_table([("c1", 2, 3)])
    for partition, expected in (("c1", where(ROWS, lambda row: row[1:] == (2, 3))), ("c2", [])):
        data = data_file(path, spec_id=3, partition=(partition,))
        assert deleted(equality_task(tmp_path, data, rows, (1, 2, 3)), context_of(SCHEMA, spec=spec)) == expected


def test_struct_fields_may_be_delete_columns_but_list_elements_not(tmp_path: Path) -> None:
    """DA-4, DA-6: the null of a parent struct is a null of its field."""
    struct = StructType(NestedField(2, "x", StringType()), NestedField(3, "y", LongType()))
    schema = Schema(
        NestedField(1, "s", struct), NestedField(4, "l", ListType(5, LongType(), element_required=False)), schema_id=0
    )

    def ids(field_id: int) -> dict[bytes, bytes]:
        return {b"PARQUET:field_id": str(field_id).encode()}

    arrow = pa.struct([pa.field("x", pa.string(), metadata=ids(2)), pa.field("y", pa.int64(), metadata=ids(3))])
    rows = [{"x": "a", "y": 1}, None, {"x": None, "y": 1}, {"x": "b", "y": None}]
    table = pa.Table.from_arrays([pa.array(rows, arrow)], schema=pa.schema([pa.field("s", arrow, metadata=ids(1))]))
    data = data_file(write(tmp_path / "x.parquet", table))
    deletes = with_ids(pa.table({"x": pa.array([None, "b"], pa.string())}), [2])
    assert deleted(equality_task(tmp_path, data, deletes, (2,)), context_of(schema)) == [1, 2, 3]
    in_list = with_ids(pa.table({"element": pa.array([1], pa.int64())}), [5])
    with pytest.raises(CorruptFileError, match=r"eq5\.parquet.*field id 5"):
        deleted(equality_task(tmp_path, data, in_list, (5,)), context_of(schema))


def position_deletes(tmp_path: Path, name: str, rows: list[tuple[str, int]], ids: list[int | None]) -> Path:
    paths, positions = zip(*rows, strict=True)
    table = pa.table({"file_path": pa.array(paths), "pos": pa.array(positions, pa.int64())})
    return write(tmp_path / name, with_ids(table, ids), row_group_size=3)


def test_position_out_of_range_raises_error_with_file_name(tmp_path: Path) -> None:
    """DA-8, DA-10: the file is named."""
    data = data_file(sorted_data(tmp_path))
    rows = [(data.file_path, 4), (data.file_path, 2**63 - 2), (data.file_path, 2**63 - 1)]
    path = position_deletes(tmp_path, "beyond.parquet", rows, [2147483546, 2147483545])
    with pytest.raises(CorruptFileError, match=r"beyond\.parquet: .*9223372036854775807 is above"):
        deleted(FileScanTask(data_file=data, position_deletes=(delete_file(path),)))


@pytest.mark.parametrize("ids", [[2147483546, 2147483545], [None, None]])
def test_position_deletes_match_by_path_and_position(tmp_path: Path, ids: list[int | None]) -> None:
    """DA-1, DA-10: columns by field id, else by name."""
    data = data_file(sorted_data(tmp_path))
    first = position_deletes(tmp_path, "p1.parquet", [("other", 5), (data.file_path, 3), (data.file_path, 4)], ids)
    second = position_deletes(
        tmp_path, "p2.parquet", [(data.file_path, 0), (data.file_path, 4), (f"file:{data.file_path}", 9)], ids
    )
    task = FileScanTask(data_file=data, position_deletes=(delete_file(first), delete_file(second)))
    assert deleted(task) == [0, 3, 4]


def test_large_position_delete_file_reads_only_matching_row_groups(
    tmp_path: Path, groups_read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_loader, "_WHOLE_FILE_BYTES", 0)
    rows = [(f"/data/{number // 3}.parquet", number) for number in range(12)]
    path = position_deletes(tmp_path, "p.parquet", rows, [2147483546, 2147483545])
    data = data_file(sorted_data(tmp_path), file_path="/data/2.parquet")
    task = FileScanTask(data_file=data, position_deletes=(delete_file(path),))
    assert deleted(task) == [6, 7, 8]
    assert [groups for _, groups in groups_read] == [(2,)]


def test_one_position_delete_file_is_read_once_for_all_data_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    read_parquet = delete_loader.read_parquet

    def counted(io: FileIO, file: DeleteFile, **options: Any) -> OpenedFile:
        read.append(file)
        return read_parquet(io, file, **options)

    monkeypatch.setattr(delete_loader, "read_parquet", counted)
    path = position_deletes(tmp_path, "p.parquet", [("a", 1), ("b", 2)], [2147483546, 2147483545])
    context = context_of(SCHEMA)
    for name, expected in (("a", [1]), ("b", [2]), ("c", [])):
        data = data_file(sorted_data(tmp_path), file_path=name)
        assert deleted(FileScanTask(data_file=data, position_deletes=(delete_file(path),)), context) == expected
    assert [file.file_path for file in read] == [str(path)]


def vector_file(tmp_path: Path, *sets: PositionSet) -> list[tuple[Path, dict[str, object]]]:
    blobs = [(deletion_vector_metadata("x", len(positions)), encode_vector(positions)) for positions in sets]
    content, footer = encode_puffin(blobs)
    path = tmp_path / "x.puffin"
    path.write_bytes(content)
    return [
        (
            path,
            {
                "file_format": "PUFFIN",
                "content_offset": blob.offset,
                "content_size_bytes": blob.length_bytes,
                "record_count": len(positions),
                "referenced_data_file": "x",
            },
        )
        for blob, positions in zip(footer.blobs, sets, strict=True)
    ]


def test_a_deletion_vector_replaces_position_deletes(tmp_path: Path) -> None:
    """DA-7: several vectors in one Puffin file are distinguished by their offset."""
    data = data_file(sorted_data(tmp_path))
    ignored = position_deletes(tmp_path, "p.parquet", [(data.file_path, 3)], [2147483546, 2147483545])
    for (path, entry), expected in zip(
        vector_file(tmp_path, PositionSet.from_array(np.array([1, 5])), PositionSet.from_array(np.array([7]))),
        ([1, 5], [7]),
        strict=True,
    ):
        task = FileScanTask(
            data_file=data, deletion_vector=delete_file(path, **entry), position_deletes=(delete_file(ignored),)
        )
        assert deleted(task) == expected


def test_vector_cardinality_mismatch_is_rejected(tmp_path: Path) -> None:
    """DA-8"""
    ((path, entry),) = vector_file(tmp_path, PositionSet.from_array(np.array([1, 5])))
    task = FileScanTask(
        data_file=data_file(sorted_data(tmp_path)), deletion_vector=delete_file(path, **(entry | {"record_count": 3}))
    )
    with pytest.raises(CorruptFileError, match=r"x\.puffin: .* 2 positions.* 3"):
        deleted(task)


def test_all_delete_kinds_combine(tmp_path: Path) -> None:
    data = data_file(sorted_data(tmp_path))
    positions = position_deletes(tmp_path, "p.parquet", [(data.file_path, 119)], [2147483546, 2147483545])
    equality = equality_task(tmp_path, data, key_table([("c0", 0, 1)]), (1, 2, 3)).equality_deletes
    task = FileScanTask(
        data_file=data,
        position_deletes=(delete_file(positions),),
        equality_deletes=equality,
        range_deletes=(prefixes(("c0", 0)), span_of_bounds(KEY, ("c5", 4, 2), None)),
    )
    assert deleted(task) == [0, 1, 2, 3, 118, 119]


def test_a_file_without_deletes_is_not_opened(tmp_path: Path) -> None:
    absent = data_file(sorted_data(tmp_path), file_path=str(tmp_path / "absent.parquet"))
    assert deleted(FileScanTask(data_file=absent)) == []


@pytest.mark.parametrize("kind", ["position", "equality", "range", "vector"])
@pytest.mark.parametrize("damage", ["absent", "empty", "truncated", "text"])
def test_unreadable_delete_file_fails_the_scan_with_its_name(tmp_path: Path, kind: str, damage: str) -> None:
    """DA-8: never "no deletes"."""
    data = data_file(sorted_data(tmp_path))
    path = tmp_path / f"broken-{kind}"
    if damage != "absent":
        content = pq_bytes(tmp_path)
        path.write_bytes({"empty": b"", "truncated": content[: len(content) // 2], "text": b"x" * 5000}[damage])
    task = {
        "position": FileScanTask(data_file=data, position_deletes=(delete_file(path),)),
        "equality": FileScanTask(data_file=data, equality_deletes=(delete_file(path, equality_ids=(1,)),)),
        "range": FileScanTask(
            data_file=data,
            range_delete_files=(delete_file(path, equality_ids=(1,), file_format=RANGE_DELETES_PARQUET),),
        ),
        "vector": FileScanTask(
            data_file=data,
            deletion_vector=delete_file(path, file_format="PUFFIN", content_offset=4, content_size_bytes=40),
        ),
    }[kind]
    with pytest.raises(CorruptFileError) as caught:
        deleted(task)
    assert caught.value.location == str(path)


def pq_bytes(tmp_path: Path) -> bytes:
    path = tmp_path / "good.parquet"
    pq.write_table(key_table(ROWS), path)
    return path.read_bytes()


def test_an_equality_delete_file_without_its_column_is_refused(tmp_path: Path) -> None:
    """DA-8"""
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path)), key_table(ROWS).select([1]), (1,))
    with pytest.raises(CorruptFileError, match=r"eq1\.parquet: .*field id 1"):
        deleted(task)


def test_equality_delete_file_with_incompatible_type_is_rejected(tmp_path: Path) -> None:
    """DA-8"""
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path)), with_ids(pa.table({"id2": ["x"]}), [2]), (2,))
    with pytest.raises(CorruptFileError, match=r"eq2\.parquet"):
        deleted(task)


@pytest.mark.parametrize("file_format", ["AVRO", "ORC"])
def test_unsupported_file_formats_are_rejected_with_file_name(tmp_path: Path, file_format: str) -> None:
    data = data_file(sorted_data(tmp_path))
    task = equality_task(tmp_path, data, key_table(ROWS).select([0]), (1,), file_format=file_format)
    with pytest.raises(UnsupportedFeatureError, match=rf"eq1\.parquet is an {file_format}"):
        deleted(task)
    task = equality_task(tmp_path, data_file(sorted_data(tmp_path), file_format=file_format), key_table(ROWS), (1,))
    with pytest.raises(UnsupportedFeatureError, match=rf"sorted\.parquet is an {file_format}"):
        deleted(task)


def test_data_files_without_field_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    plain = pa.table({"old_name": ["c1", "c2"]})
    mapping = '[{"field-id": 1, "names": ["id1", "old_name"]}]'
    task = equality_task(
        tmp_path, data_file(write(tmp_path / "plain.parquet", plain)), with_ids(pa.table({"id1": ["c2"]}), [1]), (1,)
    )
    assert deleted(task, context_of(SCHEMA, properties={"schema.name-mapping.default": mapping})) == [1]
    with pytest.raises(UnsupportedFeatureError, match=r"plain\.parquet.*schema\.name-mapping\.default"):
        deleted(task)
