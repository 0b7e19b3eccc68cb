"""The number of requests that a scan sends to an object store (decision 16): a bound for each file, independent of the
deletes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from fault_proxy import FaultProxy
from long_forms import crossed
from new_lakes import new_lake
from test_object_store import FILE_IOS, s3_options  # noqa: F401 - the fixture

import tableformat as tf
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int64()), ("note", pa.string())])
FILES = 6


def rows(number: int) -> pa.Table:
    ids = range(4 * number, 4 * number + 6)
    return pa.table({"id": ids, "part": [number] * len(ids), "note": ["x" * 50] * len(ids)}, schema=SCHEMA)


def catalog_of_small_commits(directory: Path, name: str, verb: str, options: dict[str, str]) -> tf.Catalog:
    """A table to which each of `FILES` commits added a small data file and, except for the first commit, deletes."""
    catalog = new_lake(f"s3://lake/{name}", catalog_file=str(directory / "catalog.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    for number in range(FILES):
        table.replace(rows(number), prefix=["id"]) if verb == "replace" else table.upsert(rows(number))
    return catalog


@pytest.mark.parametrize(("file_io", "verb"), crossed(FILE_IOS, ["replace", "upsert"]))
def test_small_file_scan_sends_one_request(s3_options: dict[str, str], tmp_path: Path, file_io: str, verb: str) -> None:  # noqa: F811
    """Each data file is read once, and so is each equality delete file; spans are in the entries of theirs (RD-13). To
    ask for the size before is up to the file system under PyIceberg."""
    name = f"{verb}-{file_io.rsplit('.', 1)[1].lower()}"
    with FaultProxy(s3_options["s3.endpoint"]).running() as proxy:
        options = {**s3_options, "s3.endpoint": proxy.address, "py-io-impl": file_io}
        catalog = catalog_of_small_commits(tmp_path, name, verb, options)
        with proxy.armed():
            assert live_values(catalog.load_table("db.t"), "id") == list(range(4 * FILES + 2))
            asked = Counter(_of_parquet(request) for request in proxy.requests if ".parquet" in request)
    files = {path for _, path in asked}
    # The keys of the first upsert are in no older file.
    assert len(files) == (FILES if verb == "replace" else 2 * FILES - 1)
    assert {times for (method, _), times in asked.items() if method == "GET"} == {1}
    assert {times for (method, _), times in asked.items() if method == "HEAD"} <= {1}


@pytest.mark.parametrize(("file_io", "verb"), crossed(FILE_IOS, ["replace", "upsert"]))
def test_change_feed_request_count_for_each_small_file(
    s3_options: dict[str, str],  # noqa: F811
    tmp_path: Path,
    file_io: str,
    verb: str,
) -> None:
    """Decision 42: one read each for the keys for the deletes of all commits, for keys that were deleted before, for
    deleted rows and for new rows; regardless of the number of commits."""
    name = f"feed-{verb}-{file_io.rsplit('.', 1)[1].lower()}"
    with FaultProxy(s3_options["s3.endpoint"]).running() as proxy:
        options = {**s3_options, "s3.endpoint": proxy.address, "py-io-impl": file_io}
        catalog = catalog_of_small_commits(tmp_path, name, verb, options)
        table = catalog.load_table("db.t")
        begin = table.metadata.snapshots[1].snapshot_id
        data_files = {urlparse(path).path.lstrip("/") for path in table.inspect.data_files()["file_path"].to_pylist()}
        with proxy.armed():
            events = catalog.load_table("db.t").changes(from_snapshot_id=begin).to_arrow()
            asked = Counter(_of_parquet(request) for request in proxy.requests if ".parquet" in request)
    assert events.num_rows == (6 + 2) * (FILES - 2)
    gets = [
        times
        for (method, path), times in asked.items()
        if method == "GET" and any(path.endswith(each) for each in data_files)
    ]
    assert len(gets) == FILES - 1
    assert max(gets) <= 4


@pytest.mark.parametrize("file_io", FILE_IOS)
def test_commit_sends_one_request_for_each_file(s3_options: dict[str, str], tmp_path: Path, file_io: str) -> None:  # noqa: F811
    """Decision 32: rows, spans, two manifests, the list and the metadata file, without a request that checks whether
    they exist. The manifests and the list are written concurrently."""
    name = f"commits-{file_io.rsplit('.', 1)[1].lower()}"
    with FaultProxy(s3_options["s3.endpoint"]).running() as proxy:
        options = {**s3_options, "s3.endpoint": proxy.address, "py-io-impl": file_io}
        catalog = new_lake(f"s3://lake/{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
        table = catalog.create_table("db.t", SCHEMA, key=["id"])
        table.append(rows(0))
        proxy.delay = 0.3
        with proxy.armed():
            table.replace(rows(1), prefix=["id"])
            asked = list(proxy.requests)
            round_trips = proxy.round_trips()
        assert [request.split(" ", 1)[0] for request in asked] == ["PUT"] * 6
        assert round_trips < 6  # 4, unless a thread begins late
        assert live_values(catalog.load_table("db.t"), "id") == list(range(10))


def _of_parquet(request: str) -> tuple[str, str]:
    method, address = request.split(" ", 1)
    return method, urlparse(address).path
