"""Makes the golden lake of the version that is installed: `python tests/golden/make_golden_lake.py`.

Run once for each release, before its tag. What it makes is kept from then on and never made anew: later versions have
to read what this one wrote. `test_golden_lakes.py` reads all of them.

    lakes/<version>/lake/           a directory catalog with its tables, as the library left it
    lakes/<version>/expected.json   by table: the schema, refs, and the rows of every snapshot
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from golden_rows import expected_of
from pyiceberg.expressions import GreaterThanOrEqual
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import tableformat as tf

LAKES: Final = Path(__file__).parent / "lakes"
SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("small", pa.int32()),
        pa.field("text", pa.string()),
    ]
)
SMALL_FILES: Final = {
    "write.metadata.compression-codec": "gzip",
    "write.metadata.previous-versions-max": "1",
    "commit.manifest.min-count-to-merge": "4",
}


def rows(letter: str, numbers: Sequence[int], small: int | None = None, text: str | None = None) -> pa.Table:
    row = {"small": small, "text": text}
    return pa.Table.from_pylist([{"id1": letter, "id2": n, **row} for n in numbers], schema=SCHEMA)


def deletes(catalog: tf.Catalog, name: str, format_version: str) -> None:
    """Every kind of delete, over partitions of two specs: position deletes or vectors, equality deletes, range deletes
    within a manifest entry and in a file alone, by one column of the key and by others; rows that came with their
    delete and rows that came after it."""
    properties = {**SMALL_FILES, "format-version": format_version}
    table = catalog.create_table(
        name, SCHEMA, key=["id1", "id2"], partition_by=["bucket(2, id2)"], properties=properties
    )
    for letter in "abc":
        table.append(rows(letter, range(8), small=1, text=f"first {letter}"))
    table.delete("id2 = 7", mode="scan")
    table.delete_rows(pa.table({"id1": ["a"], "id2": [6]}))
    table.delete_rows(pa.table({"text": ["first b"], "id2": [5]}))
    table.create_tag("before ranges")
    table.delete_prefix({"id1": "a", "id2": 0})
    table.delete_prefix(pa.table({"id1": ["b"] * 12, "id2": [*range(2), *range(50, 60)]}))
    table.delete_range(lower=("b", 3), upper=("c", 1))
    table.replace(rows("a", [1, 2, 40], small=2, text="replaced"), prefix=["id1", "id2"])
    table.replace_interval(rows("c", [3], small=3, text="interval"), on="small", lower=3, upper=None)
    with table.update_spec() as update:
        update.add_field("id1", IdentityTransform(), "id1")
    table.upsert(rows("c", [2, 9], small=None, text="upserted"), application_id="writer", batch_id=4)
    with table.transaction() as tx:
        tx.append(rows("d", [1, 2]))
        tx.delete_prefix({"id1": "d", "id2": 1})
        tx.append(rows("d", [3]))
    table.rollback(snapshot_id=table.snapshot_id)
    table.delete("small = 3", mode="scan")


def evolution(catalog: tf.Catalog, name: str, format_version: str) -> None:
    """Columns added, renamed, dropped, widened and moved under rows and deletes; a new key; a constraint."""
    table = catalog.create_table(
        name, SCHEMA, key=["id1", "id2"], properties={**SMALL_FILES, "format-version": format_version}
    )
    table.append(rows("a", range(4), small=2**31 - 1, text="old"))
    table.delete_rows(pa.table({"small": pa.array([1], pa.int32())}))
    with table.update_schema() as update:
        update.update_column("small", LongType()).rename_column("text", "words").add_column("more", DoubleType())
    wide = {"id1": ["a", "b"], "id2": [2, 1], "small": [2**40, None], "words": ["new", "new"], "more": [0.5, None]}
    table.upsert(pa.table(wide))
    table.delete_prefix({"id1": "b"}, mode="equality")
    with table.update_schema() as update:
        update.delete_column("words").move_first("more")
    table.append(pa.table({"id1": ["c"], "id2": [1], "small": [3]}))
    expression = GreaterThanOrEqual("id2", 0).model_dump_json()
    table.set_properties(
        {
            "tableformat.check.positive": "id2 >= 0",
            "tableformat.check-expression.positive": expression,
            "owner": "golden",
        }
    )
    table.append(pa.table({"id1": ["c"], "id2": [2], "small": [4], "more": [1.5]}))
    table.set_key(["id2", "id1"])
    table.delete_prefix({"id2": 3})


def branches(catalog: tf.Catalog, name: str, format_version: str) -> None:
    """A branch that writers use, published to `main` with its deletes converted; jobs in between."""
    table = catalog.create_table(
        name, SCHEMA, key=["id1", "id2"], properties={**SMALL_FILES, "format-version": format_version}
    )
    table.append(rows("a", range(6), small=1))
    table.append(rows("b", range(6), small=1))
    table.create_branch("ingest")
    table.set_properties({"tableformat.publish-target.ingest": "main"})
    ingest = catalog.load_table(name, branch="ingest")
    ingest.replace(rows("a", [0, 1, 9], small=2), prefix=["id1"])
    ingest.maintenance.publish("ingest")
    ingest.refresh().delete_range(lower=("b", 2), upper=("b", 4))
    ingest.create_tag("not published", max_ref_age_ms=10**12)
    ingest.maintenance.convert_deletes()
    ingest.maintenance.compact(rewrite_all=True)
    ingest.maintenance.rewrite_manifests()
    ingest.delete_rows(pa.table({"id2": [9]}))


def types(catalog: tf.Catalog, name: str, format_version: str) -> None:
    """A column of every type, nulls, extremes; a key of several types; partitions by transforms of time and text."""
    zone = timezone(timedelta(0))
    values: list[tuple[Any, ...]] = [
        (StringType(), "äö€😀", ""),
        (DecimalType(20, 3), Decimal("-12345678901234567.890"), Decimal(0)),
        (DateType(), date(2026, 2, 28), date(1969, 12, 31)),
        (BooleanType(), True, False),
        (IntegerType(), 2**31 - 1, -(2**31)),
        (LongType(), 2**63 - 1, -(2**63)),
        (FloatType(), 1.5, -0.0),
        (DoubleType(), float("inf"), float("nan")),
        (TimeType(), time(23, 59, 59, 999999), time(0)),
        (TimestampType(), datetime(2026, 2, 28, 12, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59)),
        (TimestamptzType(), datetime(2026, 2, 28, 12, tzinfo=zone), datetime(1, 1, 1, tzinfo=zone)),
        (UUIDType(), b"\x80" + bytes(15), bytes(16)),
        (FixedType(3), b"\x00\xff\x01", bytes(3)),
        (BinaryType(), b"", b"\xff"),
        (StructType(NestedField(101, "in", LongType())), {"in": 1}, {"in": None}),
        (ListType(102, StringType(), element_required=False), ["x", None], []),
        (MapType(103, StringType(), 104, LongType(), value_required=False), [("k", 1)], []),
    ]
    if format_version == "3":
        values.append((TimestampNanoType(), 1_772_280_000_000_000_001, -1))
    schema = Schema(*(NestedField(n, f"c{n}", kind, required=n <= 3) for n, (kind, *_) in enumerate(values, start=1)))
    table = catalog.create_table(
        name,
        schema,
        key=["c1", "c2", "c3"],
        partition_by=["month(c3)", "truncate(1, c1)"],
        properties={**SMALL_FILES, "format-version": format_version},
    )
    arrow = table.scan().to_arrow().schema
    first, second = ([value[place] for value in values] for place in (1, 2))
    nulls = ["null", Decimal("0.001"), date(2026, 1, 1), *[None] * (len(values) - 3)]
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(first, second, nulls, strict=True), arrow, strict=True)
    ]
    table.append(pa.Table.from_arrays(columns, schema=arrow))
    table.delete_prefix({"c1": "äö€😀", "c2": Decimal("-12345678901234567.890")})
    table.append(pa.Table.from_arrays([column.slice(0, 1) for column in columns], schema=arrow))
    table.delete_rows(pa.table({"c5": pa.array([-(2**31)], pa.int32())}))


def without_key(catalog: tf.Catalog, name: str, format_version: str) -> None:
    """Equal rows, and deletes of some of them."""
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    table = catalog.create_table(name, schema, properties={**SMALL_FILES, "format-version": format_version})
    table.append(pa.table({"n": [1, 1, 2, None], "text": ["x", "x", None, "y"]}))
    table.delete("n = 2", mode="scan")
    table.delete_range(lower=(0,), upper=(2,), on=["n"])
    table.append(pa.table({"n": [1, 1], "text": ["x", "x"]}))


def upgraded(catalog: tf.Catalog, name: str) -> None:
    """Version 2 with position deletes, then version 3 with vectors beside them, and updates that keep row ids."""
    table = catalog.create_table(name, SCHEMA, key=["id1", "id2"], properties=SMALL_FILES)
    table.append(rows("a", range(6), small=1))
    table.delete("id2 = 1", mode="scan")
    table.upgrade(3)
    table.delete("id2 = 2", mode="scan")
    table.upsert(rows("a", [3, 7], small=2))
    table.maintenance.compact(rewrite_all=True)


TABLES: Final[dict[str, Callable[[tf.Catalog, str, str], None]]] = {
    "deletes": deletes,
    "evolution": evolution,
    "branches": branches,
    "types": types,
    "without_key": without_key,
}


def make(directory: Path) -> dict[str, Any]:
    """The lake, and what has to be read from it."""
    expected = {}
    with tf.open_catalog(str(directory)) as catalog:
        catalog.create_namespace("golden")
        for name, build in TABLES.items():
            for format_version in ("2", "3"):
                build(catalog, f"golden.{name}_v{format_version}", format_version)
        upgraded(catalog, "golden.upgraded")
        for name in catalog.list_tables("golden"):
            table = catalog.load_table(name)
            result = table.verify(deep=True)
            if result.errors:
                sys.exit(f"{name} is not sound:\n{result}")
            expected[name] = expected_of(table)
    return expected


def main() -> None:
    target = LAKES / version("tableformat")
    if target.exists():
        sys.exit(f"{target} exists: a golden lake is made once, by the version that it is named for.")
    # Metadata holds the full path of its files: a name that says nothing of the machine.
    written_at = Path(tempfile.gettempdir()) / "tableformat-golden"
    shutil.rmtree(written_at, ignore_errors=True)
    expected = make(written_at)
    target.mkdir(parents=True)
    shutil.move(written_at, target / "lake")
    lines = json.dumps(expected, indent=1, ensure_ascii=False)
    (target / "expected.json").write_text(f"{lines}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
