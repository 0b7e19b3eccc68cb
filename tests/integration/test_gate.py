"""The answers of readers without range deletes for our tables: measured, and compared with the specification.

The expected answers are in `iceberg_compatibility.json`, and as tables in `docs/reference/iceberg-compatibility.md`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import altered_tables
import duckdb_iceberg_env
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from other_readers import COLUMNS, READERS, Answers, Row, outcome

import tableformat as tf
from tableformat.parquet.parquet_file import plain_parquet
from tableformat.storage.location import local_path

pytestmark = pytest.mark.slow

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "iceberg-compatibility.md"
STATED: Final[dict[str, dict[str, dict[str, Any]]]] = json.loads(
    Path(__file__).with_name("iceberg_compatibility.json").read_text()
)
SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("num_cal", pa.int32(), nullable=False),
        pa.field("payload", pa.string()),
    ]
)
ALL_ROWS: Final[tuple[Row, ...]] = tuple(
    (id1, id2, num_cal, f"{id1}{id2}.{num_cal}") for id1 in "AB" for id2 in (1, 2) for num_cal in range(3)
)
DELETED_PREFIX: Final = ("A", 1)
LIVE_ROWS: Final = tuple(row for row in ALL_ROWS if row[:2] != DELETED_PREFIX)
GATE: Final = "RANGE_DELETES_PARQUET"
"""RD-6: the file format that other readers must reject."""


@dataclass(frozen=True, slots=True)
class State:
    """A table to read, and the rows in it."""

    location: str
    live_rows: tuple[Row, ...]
    snapshot_id: int | None = None


class Tables:
    """Builds each state once. Every method creates a separate table and returns the state to read."""

    def __init__(self, catalog: tf.Catalog) -> None:
        self._catalog = catalog
        self._built: dict[str, State] = {}

    def __getitem__(self, name: str) -> State:
        if name not in self._built:
            build: Callable[[], State] = getattr(self, f"_{name.replace('-', '_')}")
            self._built[name] = build()
        return self._built[name]

    def table(self, name: str, *, partition_by: tuple[str, ...] = (), format_version: int = 2) -> tf.Table:
        key = ["id1", "id2", "num_cal"]
        version = {"format-version": str(format_version)}
        table = self._catalog.create_table(f"db.{name}", SCHEMA, key=key, partition_by=partition_by, properties=version)
        table.append(_arrow(ALL_ROWS))
        return table

    def _no_deletes(self) -> State:
        return State(_location(self.table("no_deletes")), ALL_ROWS)

    def _position_deletes(self) -> State:
        table = self.table("position_deletes")
        table.delete(where="id1 = 'A' AND id2 = 1", mode="scan")
        assert _delete_formats(table) == {(1, "PARQUET")}
        return State(_location(table), LIVE_ROWS)

    def _equality_deletes(self) -> State:
        table = self.table("equality_deletes")
        table.delete_rows(pa.table({"id1": ["A"], "id2": pa.array([1], pa.int64())}))
        assert _delete_formats(table) == {(2, "PARQUET")}
        return State(_location(table), LIVE_ROWS)

    def _range_deletes(self) -> State:
        table = self.table("range_deletes")
        table.delete_prefix({"id1": "A", "id2": 1})
        assert _delete_formats(table) == {(2, GATE)}
        return State(_location(table), LIVE_ROWS)

    def _range_deletes_on_partitions(self) -> State:
        table = self.table("range_deletes_on_partitions", partition_by=("id1",))
        table.delete_prefix({"id1": "A", "id2": 1})
        assert _delete_formats(table) == {(2, GATE)}
        return State(_location(table), LIVE_ROWS)

    def _converted(self) -> State:
        table = self.table("converted")
        table.delete_prefix({"id1": "A", "id2": 1})
        table.delete_rows(pa.table({"id1": ["A"], "id2": pa.array([2], pa.int64())}))
        table.maintenance.convert_deletes()
        table.refresh()
        assert _delete_formats(table) == {(1, "PARQUET")}
        return State(_location(table), tuple(row for row in ALL_ROWS if row[0] != "A"))

    def _v3_no_deletes(self) -> State:
        return State(_location(self.table("v3_no_deletes", format_version=3)), ALL_ROWS)

    def _v3_deletion_vectors(self) -> State:
        table = self.table("v3_deletion_vectors", partition_by=("id1",), format_version=3)
        table.delete(where="num_cal = 0", mode="scan")
        table.delete(where="id1 = 'A' AND num_cal = 2", mode="scan")
        assert _delete_formats(table) == {(1, "PUFFIN")}
        live = (row for row in ALL_ROWS if row[2] != 0 and (row[0], row[2]) != ("A", 2))
        return State(_location(table), tuple(live))

    def _v3_equality_deletes(self) -> State:
        table = self.table("v3_equality_deletes", format_version=3)
        table.delete_rows(pa.table({"id1": ["A"], "id2": pa.array([1], pa.int64())}))
        assert _delete_formats(table) == {(2, "PARQUET")}
        return State(_location(table), LIVE_ROWS)

    def _v3_range_deletes(self) -> State:
        table = self.table("v3_range_deletes", format_version=3)
        table.delete_prefix({"id1": "A", "id2": 1})
        assert _delete_formats(table) == {(2, GATE)}
        return State(_location(table), LIVE_ROWS)

    def _v3_converted(self) -> State:
        table = self.table("v3_converted", format_version=3)
        table.delete(where="id1 = 'B' AND num_cal = 0", mode="scan")
        table.delete_prefix({"id1": "A", "id2": 1})
        table.delete_rows(pa.table({"id1": ["A"], "id2": pa.array([2], pa.int64())}))
        table.maintenance.convert_deletes()
        assert _delete_formats(table) == {(1, "PUFFIN")}
        return State(_location(table), tuple(row for row in ALL_ROWS if row[0] != "A" and row[2] != 0))

    def _v3_upgraded(self) -> State:
        table = self.table("v3_upgraded")
        table.append(_arrow((("C", 1, 0, "C1.0"), ("C", 1, 1, "C1.1"))))
        table.delete(where="id1 = 'A' AND id2 = 1 OR id1 = 'C' AND num_cal = 0", mode="scan")
        table.upgrade(3)
        table.delete_prefix({"id1": "A", "id2": 2})
        table.maintenance.convert_deletes()
        assert _delete_formats(table) == {(1, "PARQUET"), (1, "PUFFIN")}
        return State(_location(table), (*(row for row in ALL_ROWS if row[0] != "A"), ("C", 1, 1, "C1.1")))

    def _main_of_branch(self) -> State:
        main, _ = self._branched("main_of_branch")
        return State(_location(main), ALL_ROWS)

    def _branch(self) -> State:
        main, branch = self._branched("branch")
        return State(_location(main), LIVE_ROWS, branch.snapshot_id)

    def _branched(self, name: str) -> tuple[tf.Table, tf.Table]:
        main = self.table(name)
        main.create_branch("ingest")
        branch = self._catalog.load_table(f"db.{name}", branch="ingest")
        branch.delete_prefix({"id1": "A", "id2": 1})
        return main.refresh(), branch

    def _content_3(self) -> State:
        return self._range_delete_as(content=3, file_format="PARQUET")

    def _content_1000(self) -> State:
        return self._range_delete_as(content=1000, file_format="PARQUET")

    def _content_minus_1(self) -> State:
        return self._range_delete_as(content=-1, file_format="PARQUET")

    def _content_3_avro(self) -> State:
        return self._range_delete_as(content=3, file_format="AVRO")

    def _content_1000_unknown_format(self) -> State:
        return self._range_delete_as(content=1000, file_format=GATE)

    def _content_2_unknown_format(self) -> State:
        return self._range_delete_as(content=2, file_format=GATE)

    def _range_delete_as(self, **fields: Any) -> State:
        """A copy that ends with Parquet's magic bytes, so that only its entry shows what it is."""

        def as_stated(file: dict[str, Any]) -> None:
            path = Path(local_path(file["file_path"]))
            copy = path.with_name(f"plain-{path.name}")
            copy.write_bytes(plain_parquet(path.read_bytes()))
            file.update(fields, file_path=f"file://{copy}")

        return State(altered_tables.with_changed_deletes(self["range-deletes"].location, as_stated), LIVE_ROWS)

    def _equality_ids_as_long(self) -> State:
        location = self["equality-deletes"].location
        altered = altered_tables.with_changed_deletes(location, lambda _: None, altered_tables.long_equality_ids)
        return State(altered, LIVE_ROWS)

    def _format_version_4(self) -> State:
        return self._flagged(lambda metadata: metadata.update({"format-version": 4}))

    def _format_version_1000(self) -> State:
        return self._flagged(lambda metadata: metadata.update({"format-version": 1000}))

    def _snapshot_operation(self) -> State:
        return self._flagged(lambda metadata: metadata["snapshots"][-1]["summary"].update(operation="range-delete"))

    def _summary_key(self) -> State:
        return self._flagged(lambda metadata: metadata["snapshots"][-1]["summary"].update({"range-deletes": "1"}))

    def _property(self) -> State:
        return self._flagged(lambda metadata: metadata["properties"].update({"reader-features": "range-deletes"}))

    def _top_level_key(self) -> State:
        return self._flagged(lambda metadata: metadata.update({"reader-features": ["range-deletes"]}))

    def _ref_type(self) -> State:
        def add_ref(metadata: dict[str, Any]) -> None:
            metadata["refs"]["gate"] = {"snapshot-id": metadata["current-snapshot-id"], "type": "range-deletes"}

        return self._flagged(add_ref)

    def _flagged(self, change: altered_tables.Change) -> State:
        """A table that declares its range deletes in only one place: a reader that ignores it returns deleted rows."""
        return State(altered_tables.with_changed_metadata(self["no-deletes"].location, change), LIVE_ROWS)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    with new_lake(tmp_path_factory.mktemp("gate") / "lake") as catalog:
        yield Tables(catalog)


def _cases() -> list[Any]:
    return [
        pytest.param(state, reader, stated[reader], id=f"{state}-{reader}")
        for group in ("tables", "encodings")
        for state, stated in STATED[group].items()
        for reader in READERS
    ]


@pytest.mark.parametrize(("state", "reader", "stated"), _cases())
def test_other_readers_behave_as_specified(tables: Tables, state: str, reader: str, stated: str) -> None:
    answers = _read(tables[state], reader)
    assert outcome(answers, tables[state].live_rows) == stated, answers


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("state", ["range-deletes", "branch"])
def test_all_readers_reject_queries_because_of_range_delete_format(tables: Tables, state: str, reader: str) -> None:
    """RD-6: no rows, also for count(*), for filters that match deleted rows and for filters that do not."""
    for query, answer in _read(tables[state], reader).items():
        assert answer.rows is None, f"{reader} answered {query!r} with {answer.rows}"
        assert answer.error is not None
        assert GATE in answer.error, f"{reader} refused {query!r} for another reason: {answer.error}"


@pytest.mark.parametrize("state", STATED["tables"])
def test_this_library_reads_every_table_state(tables: Tables, state: str) -> None:
    chosen = tables[state]
    scan = tf.read_metadata(chosen.location).scan(snapshot_id=chosen.snapshot_id)
    assert sorted(tuple(row[name] for name in COLUMNS) for row in scan.to_arrow().to_pylist()) == sorted(
        chosen.live_rows
    )


def test_equality_ids_are_written_as_int_for_java(tables: Tables) -> None:
    """FM-9, RD-6: a list of long elements is what this library must never write; readers here take both."""
    for state in ("equality-deletes", "range-deletes"):
        assert altered_tables.equality_id_types(tables[state].location) == {"int"}
    long_ids = tables["equality-ids-as-long"]
    assert altered_tables.equality_id_types(long_ids.location) == {"long"}
    assert outcome(_read(long_ids, "duckdb"), LIVE_ROWS) == "right"


def test_summary_counts_range_deletes_as_equality_deletes(tables: Tables) -> None:
    """FM-18, RD-6: engines that answer COUNT(*) from the totals look there."""
    metadata = tf.read_metadata(tables["range-deletes"].location).metadata
    snapshot = metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    summary = snapshot.summary.additional_properties
    assert (summary["total-equality-deletes"], summary["total-delete-files"]) == ("1", "1")


PENDING: Final[dict[str, Callable[[tf.Table], Any]]] = {
    "delete_prefix": lambda table: table.delete_prefix({"id1": "A", "id2": 1}),
    "replace": lambda table: table.replace(_arrow((("A", 1, 7, "new"),)), prefix=["id1", "id2"]),
    "merge_range_deletes": lambda table: (
        table.delete_prefix({"id1": "A", "id2": 1}),
        table.delete_prefix({"id1": "B", "id2": 2}),
        table.maintenance.merge_range_deletes(),
    ),
}
PARTITIONS: Final[dict[str, tuple[str, ...]]] = {"none": (), "id1": ("id1",), "bucket": ("bucket(4, id1)",)}


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("change", PENDING)
def test_reading_range_delete_file_as_parquet_fails(
    tables: Tables, change: str, partitions: str, format_version: int
) -> None:
    """RD-6: it checks neither the file format nor the partition. Delete files of other kinds do not stop it."""
    name = f"parquet_{change}_{partitions}_{format_version}"
    table = tables.table(name, partition_by=PARTITIONS[partitions], format_version=format_version)
    table.delete_rows(pa.table({"id1": ["B"], "id2": pa.array([1], pa.int64())}))
    (equality,) = altered_tables.delete_file_paths(_location(table))
    assert pq.read_table(equality).num_rows == 1
    PENDING[change](table)
    (path,) = altered_tables.delete_file_paths(_location(table.refresh())) - {equality}
    with pytest.raises(pa.ArrowInvalid, match="magic bytes"):
        pq.read_table(path)


def test_pyiceberg_append_with_pending_range_delete_is_visible(tmp_path: Path) -> None:
    """RD-2, RD-6: a foreign append keeps the range delete, and its rows are newer than it."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id1", "id2", "num_cal"])
        table.append(_arrow(ALL_ROWS))
        table.delete_prefix({"id1": "A", "id2": 1})
        appended = (("A", 1, 9, "by PyIceberg"),)
        table.iceberg.append(_arrow(appended))
        rows = catalog.load_table("db.t").scan().to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == sorted((*LIVE_ROWS, *appended))


@pytest.mark.parametrize(("group", "first_column"), [("tables", "table"), ("encodings", "range deletes marked by")])
def test_compatibility_tables_in_specification_are_current(group: str, first_column: str) -> None:
    assert _markdown_table(group, first_column) in PAGE.read_text()


def _markdown_table(group: str, first_column: str) -> str:
    """One row for each state, one column for each reader; a dash for combinations that were not measured."""
    readers = STATED["readers"]
    heads = [first_column, *(f"{reader['name']} {reader['version']}" for reader in readers.values())]
    rows = [
        [state["state"], *(f"**{word}**" if word == "wrong" else word for word in (state.get(r, "-") for r in readers))]
        for state in STATED[group].values()
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _read(state: State, reader: str) -> Answers:
    if reader == "duckdb":
        _need_duckdb_environment()
    return READERS[reader](state.location, state.snapshot_id)


def _need_duckdb_environment() -> None:
    if duckdb_iceberg_env.is_complete():
        return
    reason = (
        f"{duckdb_iceberg_env.ENVIRONMENT.name} is not there: run `python tests/integration/duckdb_iceberg_env.py`, "
        "which installs DuckDB 1.5.5 with its Iceberg extension from PyPI into it"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _arrow(rows: tuple[Row, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=SCHEMA)


def _location(table: tf.Table) -> str:
    return table.iceberg.metadata_location


def _delete_formats(table: tf.Table) -> set[tuple[int, str]]:
    files = table.inspect.delete_files().to_pylist()
    return {(file["content"], file["file_format"]) for file in files}
