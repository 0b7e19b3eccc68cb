"""Errors for invalid calls: the argument, the reason, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

from spark_ext.service.writes.write_options import WriteOptions
from tableformat import Catalog, Table, read_metadata
from tableformat.errors import (
    InvalidArgumentError,
    UnknownOptionError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int64(), nullable=False)])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with new_lake(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    created = catalog.create_table("db.t", SCHEMA, key=["a", "b"])
    created.append(rows("x", "y"))
    return created


def rows(*names: str) -> pa.Table:
    return pa.table({"a": list(names), "b": range(len(names))}, schema=SCHEMA)


def test_misspelt_option_error_suggests_the_nearest(table: Table) -> None:
    unknown: Any = {"onduplicate": "error"}
    with pytest.raises(UnknownOptionError):
        table.append(rows("z"), **unknown)
    unknown = {"batchid": 1}
    with pytest.raises(UnknownOptionError):
        table.transaction(**unknown).__enter__()
    assert table.scan().count() == 2


def test_empty_change_has_zero_attempts(table: Table) -> None:
    """CP-17: `attempts` is 0, regardless of the work that the operation did before."""
    head = table.snapshot_id
    for result in (
        table.append(rows()),
        table.delete("a = 'nobody'", mode="scan"),
        table.delete_range(lower=("q",), upper=("q",)),
    ):
        assert (result.attempts, result.snapshot_id, result.written_bytes) == (0, head, 0)


@pytest.mark.parametrize("namespace", ["", ".", "..", " ", ("",), ("db", ""), "db.", ("db", " ")])
@pytest.mark.parametrize(
    "call", ["namespace_exists", "list_namespaces", "list_tables", "drop_namespace", "create_namespace"]
)
def test_empty_namespace_name_is_rejected(catalog: Catalog, call: str, namespace: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="namespace"):
        getattr(catalog, call)(namespace)
    assert catalog.list_namespaces() == ["db"]


@pytest.mark.parametrize("location", ["nope://x/y", "memory:///x", "http://x"])
def test_unsupported_uri_scheme_error_names_it(location: str) -> None:
    with pytest.raises(InvalidArgumentError, match=location.partition(":")[0]):
        read_metadata(location)


def test_unknown_library_property_is_rejected(catalog: Catalog, table: Table) -> None:
    """FM-23."""
    with pytest.raises(UnknownOptionError):
        catalog.create_table("db.u", SCHEMA, properties={"tableformat.write.memry-bytes": "5"})
    with pytest.raises(InvalidArgumentError, match="one of range, equality, not 'rang'"):
        table.set_properties({"write.delete.prefix-encoding": "rang"})
    table.set_properties({"tableformat.publish-target.ingest": "main", "anybody.else": "may set"})
    with pytest.raises(UnknownOptionError):
        table.remove_properties("anybodyelse")
    table.remove_properties("tableformat.publish-target.ingest")
    assert table.properties["anybody.else"] == "may set"
    assert "tableformat.publish-target.ingest" not in table.properties


@pytest.mark.parametrize(
    "name", ["tableformat.rows-unchanged", "tableformat.converted-deletes-until", "tableformat.anything"]
)
def test_reserved_summary_property_is_rejected(table: Table, name: str) -> None:
    """FM-23: a change feed would leave the snapshot out, and a conversion bring back rows of deletes that it takes for
    searched."""
    told = {"snapshot_properties": {"job": "nightly", name: "true"}}
    head, write = table.snapshot_id, table.new_write()
    calls: list[Callable[[], Any]] = [
        lambda: table.append(rows("z"), **told),
        lambda: table.delete_prefix({"a": "x"}, **told),
        lambda: table.merge(rows("z"), on="target.a = source.a", **told),
        lambda: table.transaction(**told).__enter__(),
        lambda: table.commit(write, [write.write(rows("z"))], **told),
    ]
    for call in calls:
        with pytest.raises(InvalidArgumentError, match=f"cannot set '{name}'"):
            call()
    assert table.refresh().snapshot_id == head
    with pytest.raises(InvalidArgumentError, match=f"cannot set '{name}'"):
        WriteOptions.parse({f"snapshot-property.{name}": "true"}, table="db.t")


def test_jobs_require_a_catalog(table: Table) -> None:
    static = read_metadata(table.iceberg.metadata_location)
    jobs = static.maintenance
    for job in (jobs.convert_deletes, jobs.compact, jobs.rewrite_manifests, jobs.expire_snapshots, jobs.run):
        with pytest.raises(UnsupportedFeatureError, match="read-only"):
            job()
    assert jobs.health().data_file_count == 1
    assert jobs.plan_compaction().groups == ()


@pytest.mark.parametrize("mode", ["auto", "range", "scan"])
def test_delete_range_without_bounds_is_rejected(table: Table, mode: str) -> None:
    for bounds in ({}, {"lower": None, "upper": None}, {"on": ["b"]}):
        with pytest.raises(InvalidArgumentError, match=r"every row would be deleted.*everything=True"):
            table.delete_range(mode=mode, **bounds)  # type: ignore[arg-type]
    with table.transaction() as tx, pytest.raises(InvalidArgumentError, match="everything=True"):
        tx.delete_range(mode=mode)
    with pytest.raises(InvalidArgumentError, match="cannot be combined with lower="):
        table.delete_range(lower=("x",), mode=mode, everything=True)
    assert table.refresh().scan().count() == 2
    table.delete_range(mode=mode, everything=True)
    assert table.scan().count() == 0


def test_replace_interval_without_bounds_is_rejected(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match=r"every row would be replaced.*everything=True"):
        table.replace_interval(rows("z"), on="b", lower=None, upper=None)
    with table.transaction() as tx, pytest.raises(InvalidArgumentError, match="everything=True"):
        tx.replace_interval(rows("z"), on="b", lower=None, upper=None)
    with pytest.raises(InvalidArgumentError, match="cannot be combined with lower="):
        table.replace_interval(rows("z"), on="b", lower=0, upper=None, everything=True)
    assert table.refresh().scan().count() == 2
    table.replace_interval(rows("z"), on="b", lower=None, upper=None, everything=True)
    assert table.scan().to_arrow()["a"].to_pylist() == ["z"]
