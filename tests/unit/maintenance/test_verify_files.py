"""Verification of file contents: rows, bounds, order, partitions, checksums, positions, vectors and spans."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from damaged_tables import alter_files, flip, kinds, path_of, rewrite_rows, the_finding
from maintenance_tables import KEYED, commit_deletes, keyed_table, rows, unnamed_position_delete
from new_lakes import new_lake

import tableformat as tf
from tableformat.deletes.codecs.range_file import spans_to_parquet_table, write_span_table
from tableformat.deletes.spans.spans import span_of_bounds
from tableformat.keys.encoding import encode_column
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.rising_rows import comparable_array, first_fall
from tableformat.keys.sort_marker import SORTED_BY
from tableformat.maintenance.verification import data_rows
from tableformat.maintenance.verification.findings import FindingKind, Severity
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.parquet.page_checksums import has_page_checksums
from tableformat.testing.table_files import live_data_files, live_delete_files

V3 = {"format-version": "3"}
ID1, ID2 = 1, 2
PLAIN = {"compression": "none", "use_dictionary": False, "write_statistics": False}


def table_of(tmp_path: Path, **options: Any) -> tf.Table:
    """One data file of eight rows, sorted by its key."""
    table = keyed_table(tmp_path, **options)
    table.append(pa.concat_tables([rows("a", range(4), "first"), rows("b", range(4), "other")]))
    return table


def only_data_file(table: tf.Table) -> DataFile:
    (found,) = live_data_files(table)
    return found


def only_delete_file(table: tf.Table) -> DeleteFile:
    (found,) = live_delete_files(table)
    return found


ALL_TYPES = pa.table(
    {
        "id": pa.array([3, 1, 2], pa.int64()),
        "flag": pa.array([True, None, False]),
        "small": pa.array([1, None, -5], pa.int32()),
        "single": pa.array([float("nan"), -0.0, None], pa.float32()),
        "double": pa.array([float("nan"), 0.0, -1.5]),
        "only_nan": pa.array([float("nan")] * 3),
        "day": pa.array([dt.date(1969, 12, 31), None, dt.date(2024, 1, 1)]),
        "clock": pa.array([dt.time(23, 59, 59, 999_999), dt.time(0), None], pa.time64("us")),
        "moment": pa.array([dt.datetime(1960, 1, 1, 0, 0, 0, 1), None, dt.datetime(2024, 1, 1)], pa.timestamp("us")),
        "zoned": pa.array([0, None, -1], pa.timestamp("us", tz="UTC")),
        "amount": pa.array([Decimal("-12.34"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
        "long_amount": pa.array([Decimal("-1"), Decimal(10) ** 30, None], pa.decimal128(38, 0)),
        "text": pa.array(["x" * 40, "\U0010ffff" * 20, None]),
        "bytes": pa.array([b"\xff" * 40, b"", None], pa.binary()),
        "fixed": pa.array([b"\x80" * 4, b"\x7f" * 4, None], pa.binary(4)),
        "uuid": pa.array([UUID(int=2**127).bytes, UUID(int=1).bytes, None], pa.uuid()),
        "nested": pa.array([{"inner": 1, "deep": {"text": "a"}}, None, {"inner": None, "deep": None}]),
        "list": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.array([None] * 3, pa.int32()),
    }
)


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_verifies_without_findings(tmp_path: Path, version: int) -> None:
    """MT-74: NaN, -0.0, nulls, bounds that were shortened, structs that are null, columns inside lists."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", ALL_TYPES.schema, properties={"format-version": str(version)})
    table.append(ALL_TYPES)
    found = table.verify(deep=True)
    assert found.findings == (), str(found)
    assert found.row_count == 3


def test_promoted_types_and_dropped_columns_verify_without_findings(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", ALL_TYPES.schema, partition_by=["bucket(4, small)", "amount"])
    table.append(ALL_TYPES)
    with table.update_schema() as update:
        update.delete_column("text")
        update.rename_column("double", "wide")
        update.add_column("added", table.iceberg.schema().find_type("id"))
    with table.update_spec() as update:
        update.remove_field("amount")
    table.append(pa.table({"id": [7], "added": [1]}))
    assert table.verify(deep=True).findings == ()


class TestRows:
    def test_missing_rows_are_a_finding(self, tmp_path: Path) -> None:
        """MT-74: counts of the file and of every column."""
        table = table_of(tmp_path)
        rewrite_rows(table, only_data_file(table), lambda found: found.slice(0, 6))
        found = table.verify(deep=True)
        assert set(kinds(found)) == {"wrong-count"}
        assert found.findings[0].what == "Its entry states 8 rows, but its footer states 6."
        assert len(found.findings) == 1 + len(KEYED), "and the number of values of each column"
        assert table.verify().findings == (), "metadata alone does not tell"

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (lambda ids: pc.if_else(pc.equal(ids, 3), 40, ids), "40, above the upper bound 3"),
            (lambda ids: pc.if_else(pc.equal(ids, 0), -1, ids), "-1, below the lower bound 0"),
        ],
    )
    def test_values_outside_bounds_are_a_finding(self, tmp_path: Path, change: Callable[[Any], Any], told: str) -> None:
        """MT-74: the other row group is fine."""
        table = table_of(tmp_path)

        def outside(found: pa.Table) -> pa.Table:
            return found.set_column(1, found.schema.field(1), change(found["id2"]))

        rewrite_rows(table, only_data_file(table), outside)
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_BOUNDS)
        assert (finding.file, told in finding.what) == (only_data_file(table).file_path, True), finding.what

    def test_wrong_null_and_nan_counts_are_a_finding(self, tmp_path: Path) -> None:
        catalog = new_lake(tmp_path / "lake")
        table = catalog.create_table("db.t", pa.schema([("x", pa.float64())]))
        table.append(pa.table({"x": [1.0, 2.0, 3.0]}))
        file = only_data_file(table)

        def with_values(*values: float | None) -> Callable[[pa.Table], pa.Table]:
            return lambda found: found.set_column(0, found.schema.field(0), pa.array(values, pa.float64()))

        rewrite_rows(table, file, with_values(1.0, None, 3.0))
        nulls = the_finding(table.verify(deep=True), FindingKind.WRONG_COUNT)
        assert "0 nulls in column 'x', but the file has 1" in nulls.what
        rewrite_rows(table, file, with_values(1.0, float("nan"), 3.0))
        nans = the_finding(table.verify(deep=True), FindingKind.WRONG_COUNT)
        assert "0 NaNs in column 'x', but the file has 1" in nans.what

    def test_unreadable_file_or_unsupported_format_is_a_finding(self, tmp_path: Path) -> None:
        table = table_of(tmp_path)
        path = path_of(only_data_file(table).file_path)
        whole = path.read_bytes()
        path.write_bytes(b"x" * len(whole))
        the_finding(table.verify(deep=True), FindingKind.UNREADABLE_FILE)
        path.write_bytes(whole)
        alter_files(table, lambda file: replace(file, file_format="ORC"))
        finding = the_finding(table.verify(deep=True), FindingKind.NOT_CHECKED)
        assert (finding.severity, "ORC" in finding.what) == (Severity.WARNING, True)


class TestOrder:
    def swapped(self, found: pa.Table) -> pa.Table:
        return found.take(pa.array([0, 1, 2, 4, 3, 5, 6, 7]))

    @pytest.mark.parametrize("batch_rows", [1, 2, 4, 100])
    def test_unsorted_rows_with_sort_marker_are_a_finding(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
    ) -> None:
        """MT-74, RD-11: also if the first unsorted row is at the start of a batch."""
        table = table_of(tmp_path)
        assert SORTED_BY in pq.read_metadata(path_of(only_data_file(table).file_path)).metadata
        monkeypatch.setattr(data_rows, "_BATCH_ROWS_MAX", batch_rows)
        assert table.verify(deep=True).findings == ()
        rewrite_rows(table, only_data_file(table), self.swapped)
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_ORDER)
        assert "sorted by id1, id2, but the row at position 4 " in finding.what

    def test_unsorted_row_groups_are_a_finding(self, tmp_path: Path) -> None:
        table = table_of(tmp_path)
        rewrite_rows(table, only_data_file(table), lambda found: found.take(pa.array([4, 5, 6, 7, 0, 1, 2, 3])))
        assert "position 4 " in the_finding(table.verify(deep=True), FindingKind.WRONG_ORDER).what

    def test_sort_check_agrees_with_encoded_key_order(self) -> None:
        """RD-4: nulls first, NaN last, -0.0 as 0.0; many columns of small random values."""
        from pyiceberg.types import DoubleType, LongType, StringType

        chance = random.Random(7)
        pools = [[None, 0, 1], [None, "", "a", "a\x00", "b"], [None, -0.0, 0.0, float("nan"), float("inf"), -1.0]]
        types = [LongType(), StringType(), DoubleType()]
        arrow = [pa.int64(), pa.large_string(), pa.float64()]
        falls = 0
        for _ in range(2000):
            values: list[list[Any]] = [chance.choices(pool, k=4) for pool in pools]
            values[0].sort(key=lambda value: -1 if value is None else value)
            columns = [pa.array(each, kind) for each, kind in zip(values, arrow, strict=True)]
            encoded = [encode_column(each, kind) for each, kind in zip(columns, types, strict=True)]
            keys = [b"".join(each[row].as_py() for each in encoded) for row in range(4)]
            expected = next((row for row in range(1, 4) if keys[row] < keys[row - 1]), None)
            assert first_fall([comparable_array(each) for each in columns]) == expected, values
            falls += expected is not None
        assert 0 < falls < 2000


class TestPartitions:
    @pytest.mark.parametrize("partition_by", ["id1", "truncate(1, id1)", "bucket(64, id1)"])
    def test_row_of_another_partition_is_a_finding(self, tmp_path: Path, partition_by: str) -> None:
        """MT-74: the value lies within the bounds, and the order is kept."""
        table = keyed_table(tmp_path, partition_by=(partition_by,))
        table.append(rows("b", range(4)))
        assert table.verify(deep=True).findings == ()
        lower, upper = ({ID1: to_bound(text, table.iceberg.schema().find_type("id1"))} for text in ("a", "z"))
        file = only_data_file(table)

        def strange(found: pa.Table) -> pa.Table:
            return found.set_column(
                0, found.schema.field(0), pa.array(["b", "b", "b", "y"], found.schema.field(0).type)
            )

        rewrite_rows(table, file, strange)
        alter_files(
            table,
            lambda each: replace(
                each, lower_bounds={**each.lower_bounds, **lower}, upper_bounds={**each.upper_bounds, **upper}
            ),
        )
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_PARTITION)
        assert "has a row of" in finding.what

    def test_partition_times_and_nulls_verify_without_findings(self, tmp_path: Path) -> None:
        catalog = new_lake(tmp_path / "lake")
        schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.float64())])
        table = catalog.create_table("db.t", schema, partition_by=["day(ts)", "x"])
        moments = [dt.datetime(1969, 12, 31, 23), None, dt.datetime(2024, 2, 29)]
        table.append(pa.table({"id": [1, 2, 3], "ts": moments, "x": [float("nan"), None, -0.0]}, schema=schema))
        assert sorted(data.record_count for data in live_data_files(table)) == [1, 1, 1]
        assert table.verify(deep=True).findings == ()


class TestChecksums:
    @pytest.mark.parametrize("has_checksums", [True, False])
    def test_bit_flip_in_data_file_is_found_with_checksums(self, tmp_path: Path, has_checksums: bool) -> None:
        """MT-74: without a checksum it cannot be detected, and the report says so."""
        table = table_of(tmp_path)
        file = only_data_file(table)
        rewrite_rows(table, file, lambda found: found, write_page_checksum=has_checksums, **PLAIN)
        before = table.verify(deep=True)
        assert (before.findings, before.unchecksummed_file_count) == ((), 0 if has_checksums else 1)
        data = path_of(file.file_path).read_bytes()
        at = data.rindex(b"first")
        path_of(file.file_path).write_bytes(data[: at + 4] + b"u" + data[at + 5 :])
        if has_checksums:
            the_finding(table.verify(deep=True), FindingKind.WRONG_CHECKSUM)
        else:
            assert table.verify(deep=True).findings == ()

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    @pytest.mark.parametrize("use_dictionary", [True, False])
    def test_presence_of_checksums_is_reported(self, tmp_path: Path, version: str, use_dictionary: bool) -> None:
        path = tmp_path / "x.parquet"
        values = pa.table({"x": list(range(1000))})
        for has_checksums in (True, False):
            pq.write_table(
                values,
                path,
                write_page_checksum=has_checksums,
                use_dictionary=use_dictionary,
                data_page_version=version,
            )
            with pa.OSFile(str(path)) as source:
                assert has_page_checksums(pq.read_metadata(path), source) is has_checksums

    @pytest.mark.parametrize("kind", ["position", "equality", "range"])
    def test_bit_flip_in_delete_file_is_a_finding(self, tmp_path: Path, kind: str) -> None:
        """MT-75"""
        table = table_of(tmp_path)
        match kind:
            case "position":
                table.delete("id2 = 1", mode="scan")
            case "equality":
                table.delete_rows(pa.table({"payload": ["first"]}))
            case "range":
                table.delete_range(lower=("a", 1), upper=("b", 2))
        delete = only_delete_file(table)
        rewrite_rows(table, delete, lambda found: found, write_page_checksum=True, **PLAIN)
        assert table.verify(deep=True).findings == ()
        needle = {"position": b".parquet", "equality": b"first", "range": b"\x01\x00\x00\x00\x00\x00\x00\x00"}[kind]
        flip(delete.file_path, needle)
        the_finding(table.verify(deep=True), FindingKind.WRONG_CHECKSUM)


class TestPositions:
    def test_position_beyond_the_data_file_is_a_finding(self, tmp_path: Path) -> None:
        """MT-75"""
        table = table_of(tmp_path)
        commit_deletes(table, unnamed_position_delete(table, [(only_data_file(table), 8)]))
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_POSITION)
        assert "position 8 of " in finding.what
        assert finding.what.endswith("which has 8 rows.")

    def test_position_of_another_data_file_is_a_finding(self, tmp_path: Path) -> None:
        table = table_of(tmp_path)
        table.append(rows("c", range(3)))
        first, second = live_data_files(table)
        delete = unnamed_position_delete(table, [(first, 1), (second, 1)])
        commit_deletes(table, replace(delete, referenced_data_file=first.file_path))
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_POSITION)
        assert second.file_path in finding.what

    def test_missing_positions_are_a_finding(self, tmp_path: Path) -> None:
        table = table_of(tmp_path)
        table.delete("id2 = 1", mode="scan")
        alter_files(table, lambda file: replace(file, record_count=3) if isinstance(file, DeleteFile) else file)
        found = table.verify(deep=True)
        assert "unreadable-file" in kinds(found), "no reader takes a delete file that lost rows (DA-11)"
        assert any("its manifest entry 3" in each.what for each in found.findings)


class TestVectors:
    def made(self, tmp_path: Path) -> tf.Table:
        table = table_of(tmp_path, properties=V3)
        table.delete("id2 = 1", mode="scan")
        assert table.verify(deep=True).findings == ()
        return table

    def test_vector_checksum_mismatch_is_a_finding(self, tmp_path: Path) -> None:
        """MT-75"""
        table = self.made(tmp_path)
        vector = only_delete_file(table)
        path, at = path_of(vector.file_path), (vector.content_offset or 0) + (vector.content_size_bytes or 0) - 6
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(bytes(data))
        the_finding(table.verify(deep=True), FindingKind.WRONG_CHECKSUM)

    def test_wrong_vector_cardinality_data_file_or_offset_is_a_finding(self, tmp_path: Path) -> None:
        table = self.made(tmp_path)
        entry = only_delete_file(table)
        alter_files(table, lambda file: replace(file, record_count=1) if isinstance(file, DeleteFile) else file)
        assert {"unreadable-file", "wrong-position"} <= set(kinds(table.verify(deep=True)))
        alter_files(table, lambda file: replace(entry, content_offset=5) if isinstance(file, DeleteFile) else file)
        assert "its footer has no deletion vector" in str(table.verify(deep=True)).lower()

    def test_vector_positions_beyond_the_data_file_are_a_finding(self, tmp_path: Path) -> None:
        table = self.made(tmp_path)
        table.delete("id1 = 'b' AND id2 = 3", mode="scan")
        rewrite_rows(table, only_data_file(table), lambda found: found.slice(0, 7))
        alter_files(table, lambda file: replace(file, record_count=7) if isinstance(file, DataFile) else file)
        found = table.verify(deep=True)
        assert any("names position 7" in each.what and "has 7 rows" in each.what for each in found.findings), str(found)

    def test_damaged_puffin_footer_is_a_finding(self, tmp_path: Path) -> None:
        table = self.made(tmp_path)
        path = path_of(only_delete_file(table).file_path)
        path.write_bytes(path.read_bytes()[:-4] + b"oops")
        the_finding(table.verify(deep=True), FindingKind.UNREADABLE_FILE)


class TestEqualityDeletes:
    def test_bounds_and_columns(self, tmp_path: Path) -> None:
        """MT-75: bounds decide to which data files the delete applies."""
        table = table_of(tmp_path)
        table.delete_rows(pa.table({"payload": ["first", "other"]}))
        assert table.verify(deep=True).findings == ()
        delete = only_delete_file(table)
        (field_id,) = delete.equality_ids or ()
        narrow = {field_id: b"first"}
        alter_files(table, lambda file: replace(file, upper_bounds=narrow) if isinstance(file, DeleteFile) else file)
        the_finding(table.verify(deep=True), FindingKind.WRONG_BOUNDS)
        alter_files(table, lambda file: replace(file, equality_ids=(ID1,)) if isinstance(file, DeleteFile) else file)
        assert "field id 1 is not in the file" in the_finding(table.verify(deep=True), FindingKind.UNREADABLE_FILE).what


class TestSpans:
    KEY = ("id1", "id2")

    def made(self, tmp_path: Path) -> tf.Table:
        table = table_of(tmp_path)
        table.delete_range(lower=("a", 1), upper=("b", 2))
        assert only_delete_file(table).range_spans is not None
        assert table.verify(deep=True).findings == ()
        return table

    def write(self, table: tf.Table, lower: tuple[Any, ...], upper: tuple[Any, ...], number: int | None = None) -> None:
        schema = table.iceberg.schema()
        key = KeyColumns((ID1, ID2), self.KEY, tuple(schema.find_type(name) for name in self.KEY))  # type: ignore[arg-type]
        spans = span_of_bounds(key, lower, upper)
        if number is not None:
            spans = replace(spans, sequence_numbers=np.array([number], np.int64))
        path = path_of(only_delete_file(table).file_path)
        with path.open("wb") as sink:
            write_span_table(spans_to_parquet_table(spans), sink)
        size = path.stat().st_size
        alter_files(table, lambda file: replace(file, file_size_bytes=size) if isinstance(file, DeleteFile) else file)

    def test_different_inline_spans_are_a_finding(self, tmp_path: Path) -> None:
        """MT-75, RD-13"""
        table = self.made(tmp_path)
        self.write(table, ("a", 1), ("b", 1))
        finding = the_finding(table.verify(deep=True), FindingKind.WRONG_SPANS)
        assert "entry carries 1 spans" in finding.what

    def test_span_newer_than_its_file_is_a_finding(self, tmp_path: Path) -> None:
        """RD-8"""
        table = self.made(tmp_path)
        self.write(table, ("a", 1), ("b", 2), number=9)
        assert "number 9" in the_finding(table.verify(deep=True), FindingKind.WRONG_SPANS).what

    def test_too_narrow_span_bounds_are_a_finding(self, tmp_path: Path) -> None:
        """RD-6"""
        table = self.made(tmp_path)
        narrow = {ID1: to_bound("a", table.iceberg.schema().find_type("id1"))}
        alter_files(table, lambda file: replace(file, upper_bounds=narrow) if isinstance(file, DeleteFile) else file)
        the_finding(table.verify(deep=True), FindingKind.WRONG_BOUNDS)

    def test_span_columns_different_from_the_entry_are_a_finding(self, tmp_path: Path) -> None:
        table = self.made(tmp_path)
        alter_files(
            table,
            lambda file: (
                replace(file, equality_ids=(ID2, ID1), range_spans=None, lower_bounds=None, upper_bounds=None)
                if isinstance(file, DeleteFile)
                else file
            ),
        )
        assert "delete columns (2, 1)" in the_finding(table.verify(deep=True), FindingKind.WRONG_SPANS).what
