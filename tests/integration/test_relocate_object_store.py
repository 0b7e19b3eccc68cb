"""Backup to an object store, restore from it, and a prefix that was copied with the tools of the store."""

from __future__ import annotations

from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from new_lakes import new_lake
from test_object_store import FILE_IOS, SCHEMA, rows, s3_options  # noqa: F401 - the fixture

import tableformat as tf
from tableformat.errors import MovedLakeError
from tableformat.testing.table_rows import live_tuples

pytestmark = pytest.mark.slow

EXPECTED = [("a", 1, "x"), ("b", 1, "again")]


def make_lake(directory: Path, version: str) -> tf.Catalog:
    catalog = new_lake(directory)
    properties = {"format-version": version}
    table = catalog.create_table(
        "db.t", SCHEMA, key=["id1", "id2"], partition_by=["bucket(2, id1)"], properties=properties
    )
    table.append(rows(("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")))
    table.delete("id2 = 2", mode="scan")
    table.upsert(rows(("b", 1, "again")))
    table.create_tag("kept")
    return catalog


def client(options: dict[str, str]) -> boto3.client:
    return boto3.client(
        "s3",
        endpoint_url=options["s3.endpoint"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )


def check(catalog: tf.Catalog, root: str) -> None:
    table = catalog.load_table("db.t")
    assert live_tuples(table) == EXPECTED
    assert table.scan(tag="kept").count() == 2
    assert table.location == f"{root}/db/t"
    assert table.verify(deep=True).errors == ()
    table.append(pa.table(rows(("c", 1, "new"))))
    table.maintenance.convert_deletes()
    table.maintenance.compact()
    assert live_tuples(table) == [*EXPECTED, ("c", 1, "new")]


@pytest.mark.parametrize(("file_io", "version"), [(FILE_IOS[0], "2"), (FILE_IOS[1], "3")])
def test_lake_is_backed_up_to_and_restored_from_object_store(
    s3_options: dict[str, str],  # noqa: F811
    tmp_path: Path,
    file_io: str,
    version: str,
) -> None:
    """LK-6, LK-7: the machine is lost with its lake and the catalog of the backup."""
    options = {**s3_options, "py-io-impl": file_io}
    lake = make_lake(tmp_path / "lake", version)
    place = f"s3://lake/backup{version}"
    for _ in range(2):
        result = lake.relocate(place, catalog_file=str(tmp_path / "backup.db"), **options)
    assert result.unchanged_tables == ("db.t",)
    client(options).download_file("lake", f"backup{version}/catalog.db", str(tmp_path / "found.db"))
    with tf.open_catalog(place, catalog_file=str(tmp_path / "found.db"), **options) as backup:
        assert live_tuples(backup.load_table("db.t")) == EXPECTED
        restored = backup.relocate(str(tmp_path / "restored"))
        assert [each.table for each in restored.tables] == ["db.t"]
        check(backup, place)
    with tf.open_catalog(str(tmp_path / "restored")) as catalog:
        check(catalog, f"file://{tmp_path}/restored")


def test_copied_prefix_is_relocated_in_place(s3_options: dict[str, str], tmp_path: Path) -> None:  # noqa: F811
    """LK-3, LK-4, LK-8"""
    make_lake(tmp_path / "lake", "2").relocate("s3://lake/one", catalog_file=str(tmp_path / "one.db"), **s3_options)
    store = client(s3_options)
    for each in store.list_objects_v2(Bucket="lake", Prefix="one/")["Contents"]:
        source = {"Bucket": "lake", "Key": each["Key"]}
        store.copy_object(Bucket="lake", Key=each["Key"].replace("one/", "two/", 1), CopySource=source)
        store.delete_object(**source)
    store.download_file("lake", "two/catalog.db", str(tmp_path / "two.db"))
    with tf.open_catalog("s3://lake/two", catalog_file=str(tmp_path / "two.db"), **s3_options) as moved:
        table = moved.load_table("db.t")
        assert live_tuples(table) == EXPECTED
        with pytest.raises(MovedLakeError):
            table.append(rows(("c", 1, "new")))
        moved.relocate()
        check(moved, "s3://lake/two")
