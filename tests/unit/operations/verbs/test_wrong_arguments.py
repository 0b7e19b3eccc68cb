"""Errors for invalid calls: the argument, the reason, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_ext.service.writes.write_options import WriteOptions
from tableformat import Catalog, Table, open_catalog, read_metadata
from tableformat.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NamespaceNotFoundError,
    PublishRefusedError,
    UnknownOptionError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int64(), nullable=False)])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(str(tmp_path / "lake")) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    created = catalog.create_table("db.t", SCHEMA, key=["a", "b"])
    created.append(rows("x", "y"))
    return created


def rows(*names: str) -> pa.Table:
    return pa.table({"a": list(names), "b": range(len(names))}, schema=SCHEMA)


def test_a_misspelt_option_of_a_verb_gets_the_nearest_name(table: Table) -> None:
    unknown: Any = {"onduplicate": "error"}
    with pytest.raises(UnknownOptionError, match=r"'onduplicate' of append\(\)\. Did you mean 'on_duplicate'"):
        table.append(rows("z"), **unknown)
    unknown = {"batchid": 1}
    with pytest.raises(UnknownOptionError, match=r"'batchid' of transaction\(\)\. Did you mean 'batch_id'"):
        table.transaction(**unknown).__enter__()
    assert table.scan().count() == 2


def test_a_call_with_nothing_to_commit_attempts_none(table: Table) -> None:
    """CP-17: `attempts` is 0, regardless of the work that the operation did before."""
    head = table.snapshot_id
    for result in (
        table.append(rows()),
        table.delete("a = 'nobody'", mode="scan"),
        table.delete_range(lower=("q",), upper=("q",)),
    ):
        assert (result.attempts, result.snapshot_id, result.written_bytes) == (0, head, 0)


def test_a_call_with_nothing_left_to_commit_attempts_none(catalog: Catalog, table: Table) -> None:
    """CP-17, CP-4: another writer deleted the row between the read and the commit, so the operation is staged again."""
    catalog.load_table("db.t").delete("b >= 0", mode="scan")
    result = table.delete("a = 'x'", mode="scan")
    assert (result.attempts, result.snapshot_id) == (0, catalog.load_table("db.t").snapshot_id)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda table: table.replace(rows("x"), prefix="a"), r"prefix must be a list of columns: prefix=\['a'\]"),
        (lambda table: table.scan(snapshot_id="12"), "snapshot_id must be a whole number or None, not the text '12'"),
        (lambda table: table.delete("b > 1", mode="equality"), "^b > 1 does not support mode='equality'"),
        (lambda table: table.rollback(), "pass one of snapshot_id, as_of"),
        (
            lambda table: table.commit(table.new_write(), table.new_write().write(rows("z"))),
            r"must be a list.*\[staged\]",
        ),
    ],
)
def test_a_value_of_the_wrong_shape_is_told_apart_from_a_missing_one(
    table: Table, call: Callable[[Table], object], told: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        call(table)
    assert table.scan(snapshot_id=np.int64(table.snapshot_id or 0)).count() == 2


def test_a_table_is_named_with_its_namespace(catalog: Catalog) -> None:
    for call in (catalog.load_table, catalog.drop_table, catalog.table_exists):
        with pytest.raises(InvalidArgumentError, match=r"'t' is not a table name.*'db\.t'"):
            call("t")
    with pytest.raises(InvalidArgumentError, match="is not a table name"):
        catalog.create_table("t", SCHEMA)


@pytest.mark.parametrize("namespace", ["", ".", "..", " ", ("",), ("db", ""), "db.", ("db", " ")])
@pytest.mark.parametrize(
    "call", ["namespace_exists", "list_namespaces", "list_tables", "drop_namespace", "create_namespace"]
)
def test_a_namespace_without_a_name_is_refused_by_every_call(catalog: Catalog, call: str, namespace: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="namespace"):
        getattr(catalog, call)(namespace)
    assert catalog.list_namespaces() == ["db"]


def test_staging_a_table_that_is_there_says_so(catalog: Catalog, table: Table) -> None:
    with pytest.raises(AlreadyExistsError, match=r"'db\.t' exists already"):
        catalog.stage_table("db.t", SCHEMA)


@pytest.mark.parametrize("location", ["nope://x/y", "memory:///x", "http://x"])
def test_a_kind_of_uri_that_nothing_reads_is_named(location: str) -> None:
    with pytest.raises(InvalidArgumentError, match=location.partition(":")[0]):
        read_metadata(location)


def test_a_prefix_names_its_columns_by_text(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="keyed by column names"):
        table.delete_prefix({1: 1})
    assert table.scan().count() == 2


def test_renaming_into_a_namespace_that_is_not_there_names_that_namespace(catalog: Catalog, table: Table) -> None:
    with pytest.raises(NamespaceNotFoundError, match=r"no namespace for 'dbx\.t'"):
        catalog.rename_table(table.name, "dbx.t")


def test_a_property_of_ours_that_does_not_exist_is_refused(catalog: Catalog, table: Table) -> None:
    """FM-23."""
    with pytest.raises(UnknownOptionError, match=r"Did you mean 'tableformat\.write\.memory-bytes'"):
        catalog.create_table("db.u", SCHEMA, properties={"tableformat.write.memry-bytes": "5"})
    with pytest.raises(InvalidArgumentError, match="one of range, equality, not 'rang'"):
        table.set_properties({"write.delete.prefix-encoding": "rang"})
    table.set_properties({"tableformat.publish-target.ingest": "main", "anybody.else": "may set"})
    with pytest.raises(UnknownOptionError, match=r"Did you mean 'anybody\.else'"):
        table.remove_properties("anybodyelse")
    table.remove_properties("tableformat.publish-target.ingest")
    assert table.properties["anybody.else"] == "may set"
    assert "tableformat.publish-target.ingest" not in table.properties


@pytest.mark.parametrize(
    "name", ["tableformat.rows-unchanged", "tableformat.converted-deletes-until", "tableformat.anything"]
)
def test_a_summary_takes_no_name_of_ours_from_a_caller(table: Table, name: str) -> None:
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


def test_jobs_refuse_a_table_without_a_catalog(table: Table) -> None:
    static = read_metadata(table.iceberg.metadata_location)
    jobs = static.maintenance
    for job in (jobs.convert_deletes, jobs.compact, jobs.rewrite_manifests, jobs.expire_snapshots, jobs.run):
        with pytest.raises(UnsupportedFeatureError, match="read-only"):
            job()
    assert jobs.health().data_file_count == 1
    assert jobs.plan_compaction().groups == ()


def test_publishing_a_branch_that_is_not_there_names_both(table: Table) -> None:
    with pytest.raises(PublishRefusedError, match="'nope' cannot be published to 'main': branch 'nope' does not exist"):
        table.maintenance.publish("nope")


@pytest.mark.parametrize("mode", ["auto", "range", "scan"])
def test_a_range_without_bounds_does_not_empty_the_table_by_accident(table: Table, mode: str) -> None:
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


def test_an_interval_without_bounds_does_not_replace_the_table_by_accident(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match=r"every row would be replaced.*everything=True"):
        table.replace_interval(rows("z"), on="b", lower=None, upper=None)
    with table.transaction() as tx, pytest.raises(InvalidArgumentError, match="everything=True"):
        tx.replace_interval(rows("z"), on="b", lower=None, upper=None)
    with pytest.raises(InvalidArgumentError, match="cannot be combined with lower="):
        table.replace_interval(rows("z"), on="b", lower=0, upper=None, everything=True)
    assert table.refresh().scan().count() == 2
    table.replace_interval(rows("z"), on="b", lower=None, upper=None, everything=True)
    assert table.scan().to_arrow()["a"].to_pylist() == ["z"]
