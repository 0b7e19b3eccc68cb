"""MT-111, MT-112: scopes of all types of columns, and tables with branches that others follow."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from erased_tables import SENTINEL, people, people_table, rows_at, traces
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import CorruptFileError
from tableformat.maintenance.erasure.scope import ErasureScope, scope_of
from tableformat.metadata.content_file import DeleteFile, FileContent

DAYS = [dt.date(2020, 1, day) for day in (1, 2, 3, 4)]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [1, 2, 3, 33]),
    "long": (pa.int64(), [1, 2, 3, 10**12]),
    "date": (pa.date32(), DAYS),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2020, 1, day, 3) for day in (1, 2, 3, 4)]),
    "timestamptz": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3, 4)]),
    "time": (pa.time64("us"), [dt.time(hour) for hour in (1, 2, 3, 4)]),
    "decimal": (pa.decimal128(10, 2), [decimal.Decimal(f"{number}.50") for number in (1, 2, 3, 4)]),
    "binary": (pa.binary(), [b"a\x00", b"b\xff", b"mallory-01234567", b"zz"]),
    "fixed": (pa.binary(4), [b"aaaa", b"bbbb", b"cccc", b"dddd"]),
    "uuid": (pa.uuid(), [uuid.UUID(int=number << 96) for number in (1, 2, 3, 4)]),
    "string": (pa.string(), ["a", "b'c", "none", "z"]),
    "boolean": (pa.bool_(), [True, False, True, True]),
}


@pytest.mark.parametrize("partition_by", [(), ("k",)], ids=str)
@pytest.mark.parametrize("name", VALUES)
def test_erasure_of_keys_of_every_type(tmp_path: Path, name: str, partition_by: tuple[str, ...]) -> None:
    """MT-112, MT-115: also values such as `none` and 3, which metadata has for other reasons."""
    data_type, values = VALUES[name]
    schema = pa.schema([pa.field("k", data_type, nullable=False), pa.field("n", pa.int64(), nullable=False)])
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    version = "3" if len(name) % 2 else "2"
    table = catalog.create_table(
        "db.t", schema, key=["k", "n"], partition_by=partition_by, properties={"format-version": version}
    )
    keys = pa.array([value for value in values for _ in range(3)], data_type)
    table.append(pa.table({"k": keys, "n": [0, 1, 2] * 4}, schema=schema))
    person = values[2]
    table.delete_prefix({"k": person, "n": 1})
    table.delete_prefix({"k": person, "n": 2}, mode="equality")
    table.delete_range(lower=(values[1],), upper=(values[1], 1))
    table.delete("n = 1", mode="scan")
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    before = {one: table.scan(snapshot_id=one).to_arrow().to_pylist() for one in ids}
    certificate = table.maintenance.erase({"k": person})
    assert certificate.is_complete, certificate.tables[0].not_reached
    for one, rows in before.items():
        left = sorted(map(str, table.scan(snapshot_id=one).to_arrow().to_pylist()))
        assert left == sorted(str(row) for row in rows if row["k"] != person)
    assert table.verify(deep=True, erased=tf.ErasureCertificate.from_json(certificate.to_json())).is_clean


def test_erasure_by_struct_field(tmp_path: Path) -> None:
    """MT-112: by a filter; such a column is in no key."""
    person = pa.struct([pa.field("name", pa.string()), pa.field("age", pa.int32())])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("person", person)])
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema, key=["id"])
    table.append(
        pa.table(
            {"id": [1, 2, 3], "person": [{"name": "ann", "age": 1}, {"name": SENTINEL, "age": 2}, None]}, schema=schema
        )
    )
    table.delete("id = 3", mode="scan")
    certificate = table.maintenance.erase(where=f"person.name = '{SENTINEL}'")
    assert certificate.is_complete, certificate.tables[0].not_reached
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
    assert traces(tmp_path) == []


def test_erasure_uses_default_of_missing_column(tmp_path: Path) -> None:
    """MT-112, DA-6: files from before the column was added have no value of it."""
    from pyiceberg.types import StringType

    table = people_table(tmp_path, "3")
    table.append(people(("alice", 1), ("bob", 1)))
    with table.update_schema() as update:
        update.add_column("region", StringType())
    table.refresh()
    rows = people(("carol", 1), ("dave", 1)).append_column("region", pa.array([SENTINEL, "north"]))
    table.append(rows)
    assert table.maintenance.erase(where=f"region = '{SENTINEL}'").is_complete
    assert [row[0] for row in rows_at(table, table.snapshot_id)] == ["alice", "bob", "dave"]
    assert table.maintenance.erase(where="region IS NULL").erased_rows_count == 2
    assert [row[0] for row in rows_at(table, table.snapshot_id)] == ["dave"]


def test_row_copies_in_position_deletes_are_erased(tmp_path: Path) -> None:
    """MT-114: the specification lets writers of version 2 store the deleted row."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), ("zoe", 1)))
    (data,) = [task.data_file for task in table.scan().plan().tasks]
    row = pa.struct([pa.field("customer", pa.string(), metadata={"PARQUET:field_id": "1"})])
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
            pa.field("row", row, metadata={"PARQUET:field_id": "2147483544"}),
        ]
    )
    location = f"{table.location}/data/copies-deletes.parquet"
    copies = [{"customer": SENTINEL}]
    stored = pa.table({"file_path": [data.file_path], "pos": [1], "row": copies}, schema=schema)
    path = location.removeprefix("file://")
    pq.write_table(stored, path, store_schema=False)
    delete = DeleteFile(
        file_path=location,
        file_format="PARQUET",
        content=FileContent.POSITION_DELETES,
        spec_id=0,
        record_count=1,
        file_size_bytes=Path(path).stat().st_size,
        referenced_data_file=data.file_path,
    )
    planned = {"planned_snapshot_id": table.snapshot_id, "planned_sequence_number": table.view.sequence_number}
    change = TableChange(operation=Operation.DELETE, kind=ChangeKind.ROW_DELTA, added_delete_files=(delete,), **planned)
    commit_change(table.iceberg, change)
    table.refresh()
    assert traces(tmp_path)
    assert table.maintenance.erase({"customer": SENTINEL}).is_complete
    assert traces(tmp_path) == []
    assert [each[0] for each in rows_at(table, table.snapshot_id)] == ["alice"]


def test_branch_is_published_before_and_after_erasure(tmp_path: Path) -> None:
    """MT-116: the new heads of a branch and of its publish target are what publishing continues from."""
    main = people_table(tmp_path, "2", properties={"tableformat.publish-target.ingest": "main"})
    main.append(people(("alice", 1), (SENTINEL, 1)))
    main.create_branch("ingest")
    ingest = main.catalog.load_table("db.people", branch="ingest")
    ingest.append(people(("bob", 1), (SENTINEL, 2)))
    ingest.delete_prefix({"customer": "alice"})
    main.refresh().maintenance.publish("ingest", "main")
    main.refresh().append(people(("carol", 1)))
    ingest.refresh().append(people(("dave", 1), (SENTINEL, 3)))
    assert main.refresh().maintenance.erase({"customer": SENTINEL}).is_complete
    ingest.refresh().append(people(("erin", 1)))
    main.refresh().maintenance.publish("ingest", "main")
    main.refresh()
    assert [row[0] for row in rows_at(main, main.snapshot_id)] == ["bob", "carol", "dave", "erin"]
    assert traces(tmp_path) == []


def test_change_feed_consumer_continues_after_erasure(tmp_path: Path) -> None:
    """MT-116: its position is the id of a snapshot, which stays."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    table.consumers.advance("mart")
    table.append(people(("bob", 1), (SENTINEL, 2)))
    table.maintenance.erase({"customer": SENTINEL})
    feed = table.changes(consumer="mart")
    assert feed.to_arrow()["customer"].to_pylist() == ["bob"]
    table.consumers.advance("mart", feed.to_snapshot_id)
    assert table.changes(consumer="mart").to_arrow().num_rows == 0


def test_texts_that_contain_the_erased_value(tmp_path: Path) -> None:
    """MT-117: short values are words, long ones are found anywhere, and every value of an identifier counts."""
    table = people_table(tmp_path, "2")
    schema, key = table.metadata.schema(), (1, 2)

    def scope(prefix: dict[str, Any]) -> ErasureScope:
        return scope_of(schema, key, prefix=prefix, where=None)

    assert scope({"customer": "ann"}).in_text("of ann, 3")
    assert not scope({"customer": "ann"}).in_text("hannah")
    assert scope({"customer": SENTINEL}).in_text(f"x{SENTINEL}x")
    assert not scope({"customer": "none"}).in_text("none", "write.metadata.compression-codec")
    both = scope({"customer": SENTINEL, "n": 3})
    assert both.in_text(f"{SENTINEL}: 3")
    assert not both.in_text(f"{SENTINEL}: 33")
    assert scope({"customer": "a/b c"}).in_path("data/customer=a%2Fb+c/x.parquet")
    assert not scope({"customer": "3"}).in_path("data/00000-3-abc.parquet")


def test_stale_handles_after_an_erasure(tmp_path: Path) -> None:
    """CP-91: PyIceberg's commit fails, because its files are gone or the head is another one. Ours is made again, and a
    read names the missing file."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    assert table.catalog is not None
    foreign, stale, reader = (table.catalog.load_table("db.people") for _ in range(3))
    table.maintenance.erase({"customer": SENTINEL})
    with pytest.raises((CommitFailedException, FileNotFoundError)):
        foreign.iceberg.append(people(("bob", 1)))
    foreign.iceberg.refresh()
    foreign.iceberg.append(people(("bob", 1)))
    stale.append(people(("carol", 1)))
    with pytest.raises(CorruptFileError, match="refresh the handle"):
        reader.scan().to_arrow()
    table.refresh()
    assert [row[0] for row in rows_at(table, table.snapshot_id)] == ["alice", "bob", "carol"]
    assert table.verify(deep=True).errors == ()
    assert traces(tmp_path) == []
