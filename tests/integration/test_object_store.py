"""Tables on an object store: an S3 server on loopback that the tests start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema([("id1", pa.string()), ("id2", pa.int64()), ("v", pa.string())])
FILE_IOS = ["pyiceberg.io.pyarrow.PyArrowFileIO", "pyiceberg.io.fsspec.FsspecFileIO"]


@pytest.fixture(scope="module")
def s3_options() -> Iterator[dict[str, str]]:
    from moto.server import ThreadedMotoServer

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    options = {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": "us-east-1",
    }
    import boto3

    boto3.client(
        "s3",
        endpoint_url=options["s3.endpoint"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    ).create_bucket(Bucket="lake")
    yield options
    server.stop()


@pytest.fixture
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For stores that do not exist: by default the clients try for ten seconds."""
    make_few_attempts(monkeypatch)


def make_few_attempts(patch: pytest.MonkeyPatch) -> None:
    """The clients of fsspec make two attempts: botocore one, and s3fs one more."""
    patch.setenv("AWS_MAX_ATTEMPTS", "1")
    from s3fs import S3FileSystem

    patch.setattr(S3FileSystem, "retries", 2)


def rows(*tuples: tuple) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in tuples], schema=SCHEMA)


@pytest.mark.parametrize("file_io", FILE_IOS)
def test_table_operations_on_an_object_store(s3_options: dict[str, str], tmp_path: Path, file_io: str) -> None:
    name = file_io.rsplit(".", 1)[1].lower()
    options = {**s3_options, "py-io-impl": file_io}
    catalog = new_lake(f"s3://lake/{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2"], partition_by=["bucket(2, id1)"])
    table.append(rows(("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")))
    table.replace(rows(("a", 9, "new")), prefix=["id1"])
    table.upsert(rows(("b", 1, "again")))
    expected = [("a", 9, "new"), ("b", 1, "again")]

    assert expected == live_tuples(table)
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog, name="lake")
        assert expected == connection.sql("SELECT * FROM lake.db.t ORDER BY id1").fetchall()

    table.maintenance.convert_deletes()
    assert expected == live_tuples(table.iceberg)

    metadata_location = table.iceberg.metadata_location
    static = tf.read_metadata(metadata_location, **options)
    assert static.scan().count() == 2
    catalog.drop_table("db.t", purge=True)
    with pytest.raises(tf.errors.TableNotFoundError):
        tf.read_metadata(metadata_location, **options)


def test_object_store_lake_requires_catalog_file() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="catalog_file"):
        tf.open_catalog("s3://lake/somewhere")


@pytest.mark.parametrize("file_io", FILE_IOS)
def test_missing_bucket_raises_storage_error_not_corruption(
    s3_options: dict[str, str], tmp_path: Path, file_io: str
) -> None:
    """A bucket that never existed, and one that was removed under a table: the store is at fault, not a file."""
    options = {**s3_options, "py-io-impl": file_io}
    catalog = new_lake("s3://no-such-bucket/lake", catalog_file=str(tmp_path / "catalog.db"), **options)
    with pytest.raises(tf.errors.StorageError, match="no-such-bucket"):
        catalog.create_table("db.t", SCHEMA)
    assert catalog.list_tables("db") == []
    with pytest.raises((tf.errors.StorageError, tf.errors.TableNotFoundError), match="no-such-bucket"):
        tf.read_metadata("s3://no-such-bucket/lake/v1.metadata.json", **options)


@pytest.mark.parametrize("file_io", FILE_IOS)
def test_added_file_is_copied_server_side(
    s3_options: dict[str, str], tmp_path: Path, file_io: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LK-31: the bytes do not pass through this process."""

    def no_copy(*_: object) -> None:
        raise AssertionError("copied here")

    monkeypatch.setattr("tableformat.storage.another_name.open_output", no_copy)
    options = {**s3_options, "py-io-impl": file_io}
    catalog = new_lake(f"s3://lake/copied-{file_io[-10:]}", catalog_file=str(tmp_path / "c.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2"])
    table.append(rows(("a", 1, "x")))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    table.delete("id1 = 'a'", mode="scan")
    table.add_files([path])
    (named,) = table.inspect.files()["file_path"].to_pylist()
    assert named != path
    table.iceberg.io.delete(path)
    assert live_tuples(table) == [("a", 1, "x")]


def test_added_file_may_have_pattern_characters_in_its_name(s3_options: dict[str, str], tmp_path: Path) -> None:
    """LK-10: a pattern names other files only if no file has that name itself."""
    catalog = new_lake("s3://lake/brackets", catalog_file=str(tmp_path / "catalog.db"), **s3_options)
    table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2"])
    for name, row in (("a[1].parquet", ("a", 1, "x")), ("a1.parquet", ("b", 1, "y"))):
        with table.iceberg.io.new_output(f"s3://lake/incoming/{name}").create() as output:
            pq.write_table(rows(row), output)
    table.add_files(["s3://lake/incoming/a[1].parquet"])
    assert live_tuples(table) == [("a", 1, "x")]
    table.add_files(["s3://lake/incoming/a[!x].parquet"])
    assert live_tuples(table) == [("a", 1, "x"), ("b", 1, "y")]
