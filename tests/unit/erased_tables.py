"""Tables with a person to erase, and a search for the person in every byte of their files."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import tableformat as tf
from tableformat.parquet.parquet_file import plain_parquet

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
    ]
)
SENTINEL = "mallory-4711@erased.example"
"""Between the other customers in the order of keys."""
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20"}
Rows = list[tuple[Any, ...]]


def people_table(directory: Path, version: str = "2", **options: Any) -> tf.Table:
    """An empty table `db.people` with the key (customer, n) in its own lake."""
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db", exist_ok=True)
    properties = {**FAST, "format-version": version, **options.pop("properties", {})}
    return catalog.create_table("db.people", SCHEMA, key=["customer", "n"], properties=properties, **options)


def people(*keys: tuple[str, int], note: str = "a") -> pa.Table:
    return pa.table(
        {
            "customer": [customer for customer, _ in keys],
            "n": [n for _, n in keys],
            "note": [f"{note} of {customer[:3]} {n}" for customer, n in keys],
        },
        schema=SCHEMA,
    )


def of(customer: str, ids: range) -> list[tuple[str, int]]:
    return [(customer, n) for n in ids]


def rows_of_snapshots(table: tf.Table) -> dict[int, Rows]:
    """The rows of every retained snapshot, sorted."""
    return {each.snapshot_id: rows_at(table, each.snapshot_id) for each in table.metadata.snapshots}


def rows_at(table: tf.Table, snapshot_id: int) -> Rows:
    found = table.scan(snapshot_id=snapshot_id).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def without(rows: dict[int, Rows], customer: str = SENTINEL) -> dict[int, Rows]:
    """The same snapshots without the rows of a customer."""
    return {snapshot: [row for row in of_one if row[0] != customer] for snapshot, of_one in rows.items()}


def traces(directory: Path, text: str = SENTINEL) -> list[str]:
    """The files and directories that have the text: in their path, their bytes, or their decoded content."""
    return sorted({where for where, found in _contents(directory) if text in found})


def _contents(directory: Path) -> Iterator[tuple[str, str]]:
    for root, names, files in os.walk(directory):
        for name in names:
            yield f"directory {name}", os.path.join(root, name)
        for name in files:
            path = Path(root) / name
            yield f"path of {name}", str(path.relative_to(directory))
            data = path.read_bytes()
            yield f"bytes of {name}", data.decode(errors="replace")
            for found in _decoded(path, data):
                yield f"content of {name}", found


def _decoded(path: Path, data: bytes) -> Iterator[str]:
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data).decode()
    elif data[:4] == b"Obj\x01":
        for record in fastavro.reader(io.BytesIO(data)):
            yield _text(record)
    elif data[:4] == b"PAR1":
        yield from _parquet(data)


def _parquet(data: bytes) -> Iterator[str]:
    """All rows, all dictionaries, with values that no row has, and all statistics."""
    source = plain_parquet(data)
    for batch in pq.ParquetFile(pa.BufferReader(source)).iter_batches():
        yield str(batch.to_pylist())
    metadata = pq.read_metadata(pa.BufferReader(source))
    texts = [field.name for field in metadata.schema.to_arrow_schema() if field.type in (pa.string(), pa.binary())]
    for column in pq.ParquetFile(pa.BufferReader(source), read_dictionary=texts).read().columns:
        for chunk in column.chunks:
            if pa.types.is_dictionary(chunk.type):
                yield str(chunk.dictionary.to_pylist())
    yield str(metadata.metadata)
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            statistics = metadata.row_group(group).column(number).statistics
            if statistics is not None:
                yield str(statistics.to_dict())


def _text(value: Any) -> str:
    """Avro's values with bytes as text."""
    if isinstance(value, dict):
        return " ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
