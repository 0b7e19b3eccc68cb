"""Lakes with pending deletes, and clients of a server over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

import tableformat as tf

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
    ]
)
Row = tuple[str, int, str | None]


def rows(*values: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], SCHEMA)


def orders(directory: Path, version: int = 2, *, partitioned: bool = False, **properties: str) -> tf.Table:
    """Three files of orders, without a pending delete."""
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db", exist_ok=True)
    table = catalog.create_table(
        "db.orders",
        SCHEMA,
        key=["customer", "order"],
        partition_by=["customer"] if partitioned else [],
        properties={"format-version": str(version), "commit.retry.min-wait-ms": "1", **properties},
    )
    for number in range(3):
        table.append(rows(("A", number * 10 + 1, "old"), ("A", number * 10 + 2, "old"), ("B", number * 10 + 3, "old")))
    return table


def replace_message(table: tf.Table, number: int) -> None:
    """Replace one message of customer A: a pending range delete and a new row."""
    table.replace(rows(("A", number, f"new {number}")), prefix=["customer", "order"])


@contextmanager
def client_of(table: tf.Table, **options: Any) -> Iterator[RestCatalog]:
    """PyIceberg, connected to a server over the catalog of the table."""
    catalog = tf.open_catalog(table.iceberg.catalog.properties["warehouse"])
    with tf.serve(catalog, **{"freshness_seconds": 0, **options}) as server:
        client = load_catalog("served", type="rest", uri=server.url)
        assert isinstance(client, RestCatalog)
        yield client


def seen_by(client: RestCatalog, **scan: Any) -> list[Row]:
    """The rows as PyIceberg reads them through the server."""
    return sorted_rows(client.load_table("db.orders").scan(**scan).to_arrow())


def own_rows(table: tf.Table, **scan: Any) -> list[Row]:
    """The rows as this library reads them from the lake."""
    return sorted_rows(table.refresh().scan(**scan).to_arrow())


def sorted_rows(found: pa.Table) -> list[Row]:
    return sorted(tuple(row.values()) for row in found.select(SCHEMA.names).to_pylist())
