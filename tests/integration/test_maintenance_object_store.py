"""Jobs that list and remove files, on an object store that the tests start."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from botocore.exceptions import BotoCoreError
from long_forms import every_other
from new_lakes import new_lake
from test_object_store import FILE_IOS, few_attempts, s3_options  # noqa: F401 - the fixtures

import tableformat as tf
from tableformat.metadata.reachable_files import reachable_files
from tableformat.storage.listing import list_files
from tableformat.testing.table_rows import live_values

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.mark.parametrize("file_io", every_other(FILE_IOS))
def test_cleanup_jobs_keep_only_needed_objects(s3_options: dict[str, str], tmp_path: Path, file_io: str) -> None:  # noqa: F811
    """MT-3, MT-50, MT-51"""
    name = file_io.rsplit(".", 1)[1].lower()
    options = {**s3_options, "py-io-impl": file_io}
    catalog = new_lake(f"s3://lake/upkeep-{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    for number in range(4):
        table.append(pa.table({"id": [number]}, schema=SCHEMA))
    table.delete_prefix({"id": 1})
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    expired = table.maintenance.expire_snapshots(older_than=10**15)
    assert (expired.deleted_data_files_count, expired.undeleted_file_locations) == (4, ())
    orphan = f"{table.location}/data/left.parquet"
    with table.iceberg.io.new_output(orphan).create() as file:
        file.write(b"123")
    assert table.maintenance.remove_orphan_files().recent_files_count == 1
    later = int(time.time() * 1000) + 60_000
    result = table.maintenance.remove_orphan_files(older_than=later, allow_recent=True)
    assert (result.orphan_file_locations, result.freed_bytes) == ((orphan,), 3)
    named = reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io)
    assert {file.location for file in list_files(table.iceberg.io, table.location)} <= named
    assert live_values(table, "id") == [0, 2, 3]


@pytest.mark.usefixtures("few_attempts")
@pytest.mark.parametrize("file_io", every_other(FILE_IOS, 1))
def test_verify_reports_missing_and_truncated_objects(s3_options: dict[str, str], tmp_path: Path, file_io: str) -> None:  # noqa: F811
    """MT-71, MT-74: a missing object, and an object with another length than stated; and an outage, which is
    neither."""
    name = file_io.rsplit(".", 1)[1].lower()
    options = {**s3_options, "py-io-impl": file_io}
    catalog = new_lake(f"s3://lake/verified-{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(pa.table({"id": [1, 2]}, schema=SCHEMA))
    table.append(pa.table({"id": [3]}, schema=SCHEMA))
    table.delete_prefix({"id": 1})
    assert table.verify(deep=True).findings == ()
    first, second = sorted(table.inspect.data_files()["file_path"].to_pylist())
    table.iceberg.io.delete(first)
    with table.iceberg.io.new_output(second).create(overwrite=True) as file:
        file.write(b"PAR1")
    found = {each.file: str(each.kind) for each in table.verify(deep=True).findings}
    assert found == {first: "missing-file", second: "wrong-size"}
    away = tf.read_metadata(table.iceberg.metadata_location, **options)
    nowhere = {"s3.endpoint": "http://127.0.0.1:9", "s3.connect-timeout": "1"}
    away.iceberg.io = type(away.iceberg.io)({**options, **nowhere})
    with pytest.raises((OSError, BotoCoreError), match=r"(?i)connect"):
        away.verify()


@pytest.mark.parametrize("file_io", every_other(FILE_IOS, 1))
def test_erase_removes_rows_from_every_object(s3_options: dict[str, str], tmp_path: Path, file_io: str) -> None:  # noqa: F811
    """MT-111, MT-118, MT-119"""
    name = file_io.rsplit(".", 1)[1].lower()
    options = {**s3_options, "py-io-impl": file_io}
    catalog = tf.open_catalog(f"s3://lake/erased-{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
    catalog.create_namespace("db")
    schema = pa.schema([pa.field("who", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    table = catalog.create_table("db.t", schema, key=["who", "n"], partition_by=["who"])
    for number in range(3):
        table.append(pa.table({"who": ["ann", "mallory-4711"], "n": [number] * 2}, schema=schema))
    table.delete("n = 1", mode="scan")
    table.delete_prefix({"who": "mallory-4711"})
    first = table.metadata.snapshots[0].snapshot_id
    certificate = table.maintenance.erase({"who": "mallory-4711"})
    assert certificate.is_complete, certificate.tables[0].not_reached
    assert table.scan(snapshot_id=first).to_arrow()["who"].to_pylist() == ["ann"]
    io = table.iceberg.io
    for file in list_files(io, table.location):
        with io.new_input(file.location).open() as stored:
            assert b"mallory-4711" not in file.location.encode() + stored.read(), file.location
    assert table.verify(deep=True, erased=certificate).is_clean
