"""Bloom filters of data files (FM-27): which filters are written, and what filters of any writer rule out."""

from __future__ import annotations

import datetime
import random
import string
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table.update import SetPropertiesUpdate
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import CorruptFileError, InvalidArgumentError, UnknownColumnError
from tableformat.operations.history.references import commit_updates
from tableformat.parquet.bloom_filters import filter_bytes
from tableformat.parquet.bloom_filters.filter_options import FilterOption
from tableformat.parquet.bloom_filters.probe import Probe
from tableformat.parquet.bloom_filters.xxhash64 import xxhash64
from tableformat.parquet.parquet_file import OpenedFile

ENABLED = "write.parquet.bloom-filter-enabled.column."
RATE = "write.parquet.bloom-filter-fpp.column."
FILES, ROWS = 20, 50
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("value", pa.float64())])


def rows_of(file: int) -> pa.Table:
    """Rows whose ids are interleaved with the ids of every other file."""
    numbers = np.arange(ROWS) * FILES + file
    return pa.table({"id": [f"m-{number:06}" for number in numbers], "n": numbers, "value": numbers / 2}, SCHEMA)


def spread(catalog: tf.Catalog, name: str = "db.t", **properties: str) -> tf.Table:
    """Many files that cannot be distinguished by their bounds."""
    table = catalog.create_table(name, SCHEMA, key=["id", "n"], properties=properties)
    write = table.new_write()
    table.commit(write, [write.write(rows_of(file)) for file in range(FILES)])
    return table


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    return spread(catalog, **{f"{ENABLED}id": "true", f"{RATE}id": "0.0001"})


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small files whose columns are decoded."""
    found: list[str] = []
    read = OpenedFile.read_whole
    monkeypatch.setattr(
        OpenedFile, "read_whole", lambda self, leaves: found.append(self.location) or read(self, leaves)
    )
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("xxhash", 0x32DD38952C4BC720),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64_hashes_match_published_values(text: str, expected: int) -> None:
    """The published values of seed 0."""
    assert xxhash64(text.encode()) == expected


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "string": (pa.string(), lambda r: "".join(r.choices(string.printable + "äß漢", k=r.randrange(70)))),
    "binary": (pa.binary(), lambda r: r.randbytes(r.randrange(70))),
    "fixed": (pa.binary(5), lambda r: r.randbytes(5)),
    "uuid": (pa.uuid(), lambda r: UUID(bytes=r.randbytes(16))),
    "int": (pa.int32(), lambda r: r.randrange(-(2**31), 2**31)),
    "long": (pa.int64(), lambda r: r.randrange(-(2**63), 2**63)),
    "date": (pa.date32(), lambda r: datetime.date(1970, 1, 1) + datetime.timedelta(r.randrange(-9_999, 9_999))),
    "time": (pa.time64("us"), lambda r: datetime.time(r.randrange(24), r.randrange(60), 0, r.randrange(10**6))),
    "timestamp": (
        pa.timestamp("us"),
        lambda r: datetime.datetime(2026, 1, 1) + datetime.timedelta(0, 0, r.randrange(10**12)),
    ),
    "decimal": (pa.decimal128(9, 2), lambda r: Decimal(r.randrange(-(10**9) + 1, 10**9)).scaleb(-2)),
    "wide decimal": (pa.decimal128(38, 10), lambda r: Decimal(r.randrange(-(10**30), 10**30)).scaleb(-10)),
}


@pytest.mark.parametrize("name", TYPES)
def test_bloom_filter_has_no_false_negatives(catalog: tf.Catalog, decoded: list[str], name: str) -> None:
    """FM-27."""
    arrow_type, make = TYPES[name]
    seeded = random.Random(7)
    values = sorted({make(seeded) for _ in range(60)}, key=str)
    kept, absent = values[::2], values[1::2]
    schema = pa.schema([("v", arrow_type), ("n", pa.int64())])
    table = catalog.create_table("db.t", schema, properties={f"{ENABLED}v": "true", f"{RATE}v": "0.0001"})
    table.append(pa.table({"v": pa.array([*kept, None], arrow_type), "n": range(len(kept) + 1)}))
    for number, value in enumerate(kept):
        assert table.scan(EqualTo("v", value)).to_arrow()["n"].to_pylist() == [number]
    decoded.clear()
    for value in absent:
        assert table.scan(EqualTo("v", value)).to_arrow().num_rows == 0
    assert len(decoded) <= 1, "of thirty values that are not there, nearly none is taken to be"


def test_lookup_opens_only_files_whose_filter_matches(table: tf.Table, decoded: list[str]) -> None:
    """FM-27: and the next lookup does not open the other files, whose filters are already in memory."""
    for file in range(FILES):
        decoded.clear()
        assert table.get((f"m-{file:06}", file)) == {"id": f"m-{file:06}", "n": file, "value": file / 2}
        assert len(decoded) == 1
    assert table.get(("m-000003", 4)) is None
    assert table.get(("m-none", 4)) is None
    told = table.scan("id = 'm-000507'").explain()
    assert told.pruning["skipped_by_bloom_filter_count"] == FILES - 1
    assert f"{FILES - 1} by Bloom filters" in str(told)
    assert f"{FILES - 1} by Bloom filters" in told._repr_html_()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id IN ('m-000003', 'm-000027', 'm-none')", [3, 27]),
        ("id = 'm-000003' OR id = 'm-000005'", [3, 5]),
        ("id = 'm-000003' OR n = 11", [3, 11]),
        ("id = 'm-000003' AND n = 11", []),
        ("NOT (id <> 'm-000003' OR n < 1)", [3]),
        ("id <> 'm-000003' AND n < 5", [0, 1, 2, 4]),
        ("id = 'm-000003' OR id IS NULL", [3]),
        ("id IN (" + ", ".join(f"'m-{n:06}'" for n in range(0, 1000, 10)) + ") AND n < 40", [0, 10, 20, 30]),
    ],
)
def test_filters_combine_with_and_or_not(table: tf.Table, where: str, expected: list[int]) -> None:
    """FM-27: AND, OR and NOT, filters read and held."""
    for _ in range(2):
        assert sorted(table.scan(where).to_arrow()["n"].to_pylist()) == expected


def test_column_added_later_is_not_excluded(catalog: tf.Catalog) -> None:
    """FM-27: the file has no filter of it, and a default in every row."""
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
    table.append(rows_of(1))
    with table.iceberg.update_schema() as update:
        update.add_column("late", LongType(), default_value=7)
    table.refresh().set_properties({f"{ENABLED}late": "true"})
    more = rows_of(2)
    table.append(more.append_column("late", pa.array(range(ROWS), pa.int64())))
    assert table.scan(where="late = 7").count() == ROWS + 1
    assert table.scan(where="late = 8").count() == 1
    assert table.scan(where="late = 7").to_arrow().num_rows == ROWS + 1


def test_each_row_group_has_its_own_filter(catalog: tf.Catalog) -> None:
    """FM-27: such a file is asked when it is open, one row group after the other."""
    table = catalog.create_table(
        "db.t", SCHEMA, properties={f"{ENABLED}id": "true", "write.parquet.row-group-limit": "1024"}
    )
    numbers = np.arange(5_000)
    ids = [f"m-{number:06}" for number in np.random.default_rng(7).permutation(5_000)]
    table.append(pa.table({"id": ids, "n": numbers, "value": numbers / 2}, SCHEMA))
    for number in (3, 2_500, 4_999):
        rows = table.scan(f"id = 'm-{number:06}'").to_arrow()
        assert rows["n"].to_pylist() == [ids.index(f"m-{number:06}")]
    assert table.scan("id = 'm-5'").to_arrow().num_rows == 0


def filters(table: tf.Table) -> dict[str, int | None]:
    """Size of the filter with its header, of each column of the first file."""
    path = table.scan().plan().tasks[0].data_file.file_path
    group = pq.read_metadata(path.removeprefix("file://")).row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.bloom_filter_length for chunk in chunks}


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001])
def test_false_positive_rate_is_within_the_limit(catalog: tf.Catalog, rate: float) -> None:
    """FM-27: completely filled filters; writers aim at a lower rate than the rate that full filters reach."""
    count = int(FilterOption(("id",), rate, None, 16_384).most_values)
    properties = {f"{ENABLED}id": "true", f"{RATE}id": str(rate), "write.parquet.bloom-filter-max-bytes": "16384"}
    table = catalog.create_table("db.t", pa.schema([("id", pa.string())]), properties=properties)
    table.append(pa.table({"id": [f"m-{number}" for number in range(count)]}))
    (path,) = _paths(table)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    with pa.OSFile(str(path)) as source:
        blocks = filter_bytes.StoredFilter(source, str(path), chunk).whole()
    assert blocks is not None
    assert len(blocks) * 32 == 16_384
    probes = [Probe.of(f"none-{number}".encode()) for number in range(10_000)]
    passed = sum(bool(probe.is_in(blocks, probe.block_of(np.array([len(blocks)])))[0]) for probe in probes)
    assert passed <= 10_000 * rate + 4 * (10_000 * rate) ** 0.5


@pytest.mark.parametrize(
    ("name", "value", "refused", "told"),
    [
        (f"{ENABLED}idd", "true", UnknownColumnError, "Did you mean 'id'"),
        (f"{RATE}ids", "0.1", UnknownColumnError, "Did you mean 'id'"),
        (f"{ENABLED}flag", "true", InvalidArgumentError, "any type except boolean"),
        (f"{ENABLED}tags", "true", InvalidArgumentError, "one value per row"),
        (f"{ENABLED}tags.element", "true", InvalidArgumentError, "one value per row"),
        (f"{RATE}id", "0", InvalidArgumentError, "between 0 and 1"),
        (f"{RATE}id", "1", InvalidArgumentError, "between 0 and 1"),
    ],
)
def test_unsupported_filter_columns_and_properties_are_rejected(
    catalog: tf.Catalog, name: str, value: str, refused: type[Exception], told: str
) -> None:
    """FM-27, FM-25."""
    schema = pa.schema([("id", pa.string()), ("flag", pa.bool_()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(refused, match=told):
        catalog.create_table("db.t", schema, properties={name: value})
    table = catalog.create_table("db.t", schema)
    with pytest.raises(refused, match=told):
        table.set_properties({name: value})
    # A property that another engine set is ignored, except for a value that has to be used.
    commit_updates(table.iceberg, (), (SetPropertiesUpdate(updates={name: value, f"{ENABLED}id": "true"}),))
    rows = pa.table({"id": ["a"], "flag": [True], "tags": [["x"]]}, schema)
    if name == f"{RATE}id":
        with pytest.raises(InvalidArgumentError, match=told):
            table.refresh().append(rows)
    else:
        table.refresh().append(rows)
        assert filters(table)["id"] is not None


def test_unknown_filter_format_excludes_nothing(table: tf.Table, tmp_path: Path) -> None:
    """FM-27: a later hash function or compression has another header."""
    for path in _paths(table):
        damaged = bytearray(path.read_bytes())
        offset = pq.read_metadata(path).row_group(0).column(0).bloom_filter_offset
        damaged[offset + 4] = 0x2C
        path.write_bytes(damaged)
    fresh = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    assert fresh.get(("m-000003", 3)) is not None
    assert fresh.scan("id = 'm-000003'").explain().pruning["skipped_by_bloom_filter_count"] == 0


def test_filter_beyond_end_of_file_error_names_the_file(table: tf.Table, tmp_path: Path) -> None:
    """DA-8."""
    path = _paths(table)[0]
    chunk = pq.read_metadata(path).row_group(0).column(0)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(path.read_bytes()[: chunk.bloom_filter_offset + 40])
    with pa.OSFile(str(cut)) as source:
        stored = filter_bytes.StoredFilter(source, str(cut), chunk)
        with pytest.raises(CorruptFileError, match=r"cut\.parquet: one of its Bloom filters"):
            stored.whole()


def _paths(table: tf.Table) -> list[Path]:
    return [Path(task.data_file.file_path.removeprefix("file://")) for task in table.scan().plan().tasks]
