"""The answers of a reader that applies a delete file only to data files of the same partition: the gate of range
deletes (RD-6), and equality deletes.

ClickHouse is 530 MB, so it is installed in a separate environment: `make test-clickhouse` creates it and runs this
file.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import tableformat as tf

ENVIRONMENT: Final = Path(__file__).resolve().parents[2] / ".venv-clickhouse"
SETTINGS: Final = "SETTINGS optimize_read_in_order = 0, output_format_json_quote_64bit_integers = 0"
"""If a table has a sort order, as every table with a key does, ClickHouse 26.9 treats several files as one sorted
file."""
QUERIES: Final = {
    "rows": f"SELECT customer, id FROM {{table}} ORDER BY ALL {SETTINGS}",
    "count": f"SELECT count() FROM {{table}} {SETTINGS}",
    "rows that deletes reach": "SELECT id FROM {table} WHERE customer = 'ann' ORDER BY id",
    "rows that no delete reaches": "SELECT id FROM {table} WHERE customer = 'bob' ORDER BY id",
}
SCHEMA: Final = pa.schema([("customer", pa.string()), ("id", pa.int64())])

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / "bin" / "python").exists(), reason="ClickHouse is not there: `make test-clickhouse` installs it"
)


@pytest.fixture(params=["2", "3"])
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., tf.Table]:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")

    def created(properties: dict[str, str] | None = None, **options: Any) -> tf.Table:
        properties = {"format-version": request.param, **(properties or {})}
        table = catalog.create_table("shop.orders", SCHEMA, key=["customer", "id"], properties=properties, **options)
        table.append(pa.table({"customer": ["ann", "ann", "bob"], "id": [1, 2, 1]}))
        return table

    return created


def ask(table: tf.Table) -> dict[str, Any]:
    request = {"location": table.refresh().iceberg.metadata_location, "queries": QUERIES}
    process = subprocess.run(
        [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("clickhouse_reader.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    answers: dict[str, Any] = json.loads(process.stdout)
    return answers


def refuses_every_query(table: tf.Table) -> bool:
    answers = ask(table)
    assert all("error" in answer for answer in answers.values()), answers
    return True


def replace(table: tf.Table) -> None:
    table.replace(pa.table({"customer": ["ann"], "id": [3]}), prefix=["customer"])


CHANGES: Final[dict[str, Callable[[tf.Table], Any]]] = {
    "upsert": lambda table: table.upsert(pa.table({"customer": ["ann"], "id": [1]})),
    "delete_rows": lambda table: table.delete_rows(pa.table({"customer": ["ann"], "id": [1]})),
    "delete_prefix": lambda table: table.delete_prefix({"customer": "ann"}),
    "replace": replace,
}
LEFT: Final[dict[str, list[list[Any]]]] = {
    "upsert": [["ann", 1], ["ann", 2], ["bob", 1]],
    "delete_rows": [["ann", 2], ["bob", 1]],
    "delete_prefix": [["bob", 1]],
    "replace": [["ann", 3], ["bob", 1]],
}
"""The rows that each change leaves."""
EQUALITY: Final = {"write.delete.prefix-encoding": "equality"}


def evolved(table: tf.Table) -> None:
    with table.update_spec() as update:
        update.add_identity("customer")
    table.append(pa.table({"customer": ["bob"], "id": [2]}))


def test_clickhouse_reads_table_without_range_deletes(make: Callable[..., tf.Table]) -> None:
    answers = ask(make(partition_by=["customer"]))
    assert answers["rows"]["rows"] == [["ann", 1], ["ann", 2], ["bob", 1]]
    assert answers["count"]["rows"] == [[3]]


@pytest.mark.parametrize("partition_by", [[], ["customer"], ["bucket(4, customer)"]])
@pytest.mark.parametrize(
    "change",
    [lambda table: table.delete_prefix({"customer": "ann"}), replace],
    ids=["delete_prefix", "replace"],
)
def test_clickhouse_rejects_pending_range_deletes(
    make: Callable[..., tf.Table], partition_by: list[str], change: Callable[[tf.Table], Any]
) -> None:
    """RD-6"""
    table = make(partition_by=partition_by)
    change(table)
    assert refuses_every_query(table)


def test_clickhouse_rejects_range_deletes_of_evolved_spec(make: Callable[..., tf.Table]) -> None:
    """RD-6"""
    table = make()
    evolved(table)
    table.delete_prefix({"customer": "ann"})
    assert refuses_every_query(table)


def test_clickhouse_rejects_range_partitions_with_pending_deletes(tmp_path: Path) -> None:
    """RD-6"""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    years = tf.RangePartitions(on=["id"], bounds=[(0, 9)], step=1)
    table = catalog.create_table("shop.years", SCHEMA, key=["id", "customer"], range_partitions=years)
    table.append(pa.table({"customer": ["ann", "bob"], "id": [1, 1]}))
    table.delete_range(lower=(1, "ann"), upper=(1, "b"))
    assert refuses_every_query(table)


@pytest.mark.parametrize("job", ["rewrite_manifests", "merge_range_deletes"])
def test_clickhouse_rejects_range_deletes_after_jobs(make: Callable[..., tf.Table], job: str) -> None:
    """RD-6"""
    table = make(partition_by=["customer"])
    table.delete_prefix({"customer": "ann"})
    table.delete_prefix({"customer": "zoe"})
    table.append(pa.table({"customer": ["cem"], "id": [1]}))
    getattr(table.maintenance, job)()
    assert refuses_every_query(table)


def test_clickhouse_reads_converted_table_of_version_2(make: Callable[..., tf.Table]) -> None:
    """On version 3 ClickHouse rejects the deletion vector."""
    table = make(partition_by=["customer"])
    table.delete_range(lower=("ann", 1), upper=("ann", 2))
    table.maintenance.convert_deletes()
    if table.refresh().metadata.format_version == 2:
        assert ask(table)["rows"]["rows"] == [["ann", 2], ["bob", 1]]
    else:
        assert "error" in ask(table)["rows"]


@pytest.mark.parametrize("change", CHANGES)
def test_clickhouse_ignores_equality_deletes_of_partitioned_tables(make: Callable[..., tf.Table], change: str) -> None:
    """A fault of ClickHouse (decision 51). Once this test fails, ClickHouse is fixed and the documents can drop it."""
    table = make(EQUALITY, partition_by=["customer"])
    CHANGES[change](table)
    assert table.refresh().inspect.delete_files()["kind"].to_pylist() == ["equality"]
    assert ask(table)["rows"]["rows"] != LEFT[change]


@pytest.mark.parametrize(("blind", "left"), [("equality", [["bob", 3]]), ("off", [["bob", 3], [None, 2]])])
def test_clickhouse_equality_deletes_remove_rows_with_null(tmp_path: Path, blind: str, left: list[list[Any]]) -> None:
    """A fault of ClickHouse (decision 51); positions are right."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA, key=["id"], properties={"write.delete.blind": blind})
    table.append(pa.table({"customer": ["ann", None, "bob"], "id": [1, 2, 3]}))
    table.delete_rows(pa.table({"customer": ["ann"]}))
    assert ask(table)["rows"]["rows"] == left


@pytest.mark.parametrize("partition_by", [["customer"], ["bucket(4, customer)"]])
@pytest.mark.parametrize("change", CHANGES)
def test_clickhouse_reads_v2_table_with_blind_deletes_off(
    make: Callable[..., tf.Table], change: str, partition_by: list[str]
) -> None:
    """SP-22: ClickHouse rejects the deletion vectors of version 3, if any are left."""
    table = make({"write.delete.blind": "off"}, partition_by=partition_by)
    CHANGES[change](table)
    answers = ask(table)
    if table.refresh().metadata.format_version == 2:
        assert (answers["rows"]["rows"], answers["count"]["rows"]) == (LEFT[change], [[len(LEFT[change])]])
    else:
        assert "error" in answers["rows"] or answers["rows"]["rows"] == LEFT[change]


@pytest.mark.parametrize("change", CHANGES)
def test_clickhouse_reads_converted_equality_deletes_of_v2(make: Callable[..., tf.Table], change: str) -> None:
    table = make(EQUALITY, partition_by=["customer"])
    CHANGES[change](table)
    table.maintenance.convert_deletes()
    answers = ask(table)
    if table.refresh().metadata.format_version == 2:
        assert answers["rows"]["rows"] == LEFT[change]
    else:
        assert "error" in answers["rows"] or answers["rows"]["rows"] == LEFT[change]
