"""The corpus of the specification: every case through every entry point of the library, and against the in-memory
table.

The cases define what is correct. `docs/reference/corpus.md` explains the fields of a case.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from long_forms import every
from merge_in_duckdb import merging_in_duckdb
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, IsNull, Not, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, IntegerType, LongType, NestedField, StringType

import tableformat as tf
from tableformat import errors
from tableformat.deletes.codecs import inline_spans, packed_spans
from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes, reached_data_files
from tableformat.metadata.content_file import DeleteFile
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.scan.scan import Scan
from tableformat.testing.json_values import arrow_table, rows_from_json, schema_from_json
from tableformat.testing.key_order import fingerprint
from tableformat.testing.model import ModelTable, ModelTransaction
from tableformat.testing.replay import check_feed
from tableformat.testing.table_builder import VERBS, BuiltTable, build, create, live_files, split_step, verb_arguments

CORPUS = Path(__file__).parents[2] / "specs" / "corpus"
FILES = sorted(CORPUS.glob("*.json"))
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}:{case['title']}": case for path in FILES for case in json.loads(path.read_text())
}
RULES = [f"DA-{n}" for n in range(1, 12)] + [f"RD-{n}" for n in range(1, 15)]
RANGE_RULES = [f"RP-{n}" for n in (2, 5, 8, 9, 10, 12, 15, *range(19, 28))]
"""The rules of range partitions that affect rows."""
DUCKDB = duckdb.connect()
"""Shared, because starting a database takes longer than the queries."""

READABLE = [name for name, case in CASES.items() if "read_error" not in case]
UNREADABLE = [name for name, case in CASES.items() if "read_error" in case]


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return tf.open_catalog(str(tmp_path / "lake"))


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return fingerprint(table.to_pylist(), table.column_names)


def expected_rows(case: Mapping[str, Any], rows: Sequence[Any], schema: Schema) -> list[dict[str, Any]]:
    return rows_from_json(rows, schema, case.get("columns"))


def names_of(schema: Schema) -> list[str]:
    return [field.name for field in schema.fields]


def test_corpus_covers_every_rule() -> None:
    """DA-1 to DA-11, RD-1 to RD-14 and the rules of range partitions each have a case."""
    assert len(CASES) >= 45, "titles are unique within a file, and none was lost"
    assert sum(len(json.loads(path.read_text())) for path in FILES) == len(CASES)
    cited = {rule for case in CASES.values() for rule in case["rules"]}
    assert cited == {*RULES, *RANGE_RULES}


@pytest.mark.parametrize("name", READABLE)
def test_all_readers_return_the_expected_rows(name: str, catalog: tf.Catalog) -> None:
    check_rows(name, catalog)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, READABLE, 1))
def test_rows_are_equal_without_spans_in_manifest_entries(
    name: str, catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RD-13: manifest entries may also lack the spans of small range delete files."""
    carry_no_spans(monkeypatch)
    check_rows(name, catalog)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, READABLE, 3))
def test_rows_are_equal_with_packed_spans_in_manifest_entries(
    name: str, catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RD-13: manifest entries may carry spans in the form for many spans."""
    monkeypatch.setattr(inline_spans, "MAX_SPANS", 0)
    check_rows(name, catalog)


def carry_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_spans, "MAX_SPANS", 0)
    monkeypatch.setattr(packed_spans, "MAX_SPANS", 0)


def check_rows(name: str, catalog: tf.Catalog) -> None:
    case = CASES[name]
    built = build_with_errors(catalog, case)
    schema = built.table.metadata.schema()
    expected = expected_rows(case, case["rows"], schema)
    check_live_deletes(built, case.get("live_deletes"))
    check_doors(built.table.scan(), expected, schema)
    assert rows_of(built.table.scan().to_arrow()) == fingerprint(expected, names_of(schema))
    for branch, rows in case.get("branches", {}).items():
        table = catalog.load_table(built.identifier, branch=branch)
        assert rows_of(table.scan().to_arrow()) == fingerprint(expected_rows(case, rows, schema), names_of(schema))
    check_snapshots(built, case)
    asked = [step["refused"] for step in case["steps"] if "refused" in step]
    names = names_of(schema)
    for rows, found in zip(asked, built.refused, strict=True):
        assert fingerprint(found, names) == fingerprint(expected_rows(case, rows, schema), names)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "partitions" in case])
def test_range_partitions_are_listed_in_python_and_duckdb(name: str, catalog: tf.Catalog) -> None:
    """RP-14, RP-27: in Python and in DuckDB."""
    table = build_with_errors(catalog, CASES[name]).table
    columns = ["partition", "state", "record_count"]
    wanted = [dict(zip(columns, line, strict=True)) for line in CASES[name]["partitions"]]
    assert table.range_partitions.list().select(columns).to_pylist() == wanted
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        found = connection.sql(f'SELECT {", ".join(columns)} FROM lake.db."t$range_partitions"')
        assert found.to_arrow_table().to_pylist() == wanted


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "changes" in case])
def test_change_feed_reports_drops_as_requested(name: str, catalog: tf.Catalog) -> None:
    """RP-25."""
    case = CASES[name]
    table = build_with_errors(catalog, case).table
    schema = table.metadata.schema()
    for range_drops, wanted in case["changes"].items():
        feed = table.changes(range_drops=range_drops)
        rows = feed.to_arrow()
        for kind in ("insert", "delete"):
            found = rows.filter(pc.equal(rows["_change_type"], kind)).select(names_of(schema))
            assert rows_of(found) == fingerprint(expected_rows(case, wanted[kind], schema), names_of(schema))
        if "ranges" in wanted:
            assert feed.range_events()["range"].to_pylist() == wanted["ranges"]


@pytest.mark.slow
@pytest.mark.parametrize("name", every(4, READABLE))
def test_conversion_changes_no_row_of_any_snapshot(name: str, catalog: tf.Catalog) -> None:
    """After the conversion PyIceberg, which supports neither equality nor range deletes, reads the same rows."""
    case = CASES[name]
    built = build(catalog, case)
    schema = built.table.metadata.schema()
    expected = fingerprint(expected_rows(case, case["rows"], schema), names_of(schema))
    built.table.maintenance.convert_deletes()
    table = built.table
    assert not [file for file in live_files(table) if isinstance(file, DeleteFile) and file.equality_ids]
    assert rows_of(table.scan().to_arrow()) == expected
    check_snapshots(built, case)
    if case.get("pyiceberg", True):
        assert rows_of(table.iceberg.scan().to_arrow()) == expected


JOBS: list[tuple[str, dict[str, Any]]] = [
    ("compact", {"depth": "fold", "delete_ratio_threshold": 0.01}),
    ("merge_range_deletes", {}),
    ("drop_dead_deletes", {}),
    ("rewrite_manifests", {}),
    ("compact", {"rewrite_all": True}),
    ("drop_dead_deletes", {}),
    ("convert_deletes", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, READABLE, 1))
def test_maintenance_changes_no_row(name: str, catalog: tf.Catalog) -> None:
    """The jobs run in sequence, and the rows are read after each of them: no row comes back, none is lost."""
    case = CASES[name]
    built = build(catalog, case)
    schema = built.table.metadata.schema()
    expected = fingerprint(expected_rows(case, case["rows"], schema), names_of(schema))
    for job, options in JOBS:
        getattr(built.table.maintenance, job)(**options)
        assert rows_of(built.table.scan().to_arrow()) == expected, job
        check_snapshots(built, case)
    for branch, rows in case.get("branches", {}).items():
        table = catalog.load_table(built.identifier, branch=branch)
        assert rows_of(table.scan().to_arrow()) == fingerprint(expected_rows(case, rows, schema), names_of(schema))


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, READABLE, 3))
def test_changes_rebuild_every_snapshot_before_and_after_maintenance(name: str, catalog: tf.Catalog) -> None:
    """CF-3, CF-6, CF-8: for all kinds of deletes, including those of other writers, before and after all jobs."""
    case = CASES[name]
    built = build(catalog, case)
    tables = [built.table, *(catalog.load_table(built.identifier, branch=name) for name in case.get("branches", {}))]
    told = [rows_of(check_feed(table.view)) for table in tables]
    for job, options in JOBS:
        getattr(built.table.maintenance, job)(**options)
    assert [rows_of(check_feed(table.refresh().view)) for table in tables] == told


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, READABLE, 2))
def test_reached_data_files_agree_with_applicable_deletes(name: str, catalog: tf.Catalog) -> None:
    """DA-1 to DA-4, RD-2, RD-3: computed for all data files at once, with each delete file and with all of them."""
    table = build(catalog, CASES[name]).table
    data_files = [file for file in live_files(table) if not isinstance(file, DeleteFile)]
    deletes = [file for file in live_files(table) if isinstance(file, DeleteFile)]
    for some in (deletes, *([delete] for delete in deletes)):
        applicable = ApplicableDeletes(table.metadata, some)
        reached = reached_data_files(table.metadata, data_files, some)
        assert reached == [data for data in data_files if applicable.of(data)]


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_delete_file_raises_error_with_its_name(
    name: str, catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-8: an unreadable delete file must not be treated as empty."""
    carry_no_spans(monkeypatch)  # entries that carry their spans (RD-13) need no file
    case = CASES[name]
    built = build(catalog, case)
    failure = case["read_error"]
    for read in (lambda scan: scan.to_arrow(), lambda scan: list(scan.to_batches()), lambda scan: scan.count()):
        with pytest.raises(getattr(errors, failure["type"]), match=failure["names"]):
            read(built.table.scan())
    if case.get("is_needed_to_convert", True):
        with pytest.raises(getattr(errors, failure["type"]), match=failure["names"]):
            built.table.maintenance.convert_deletes()


NOT_MODELLED = {
    *("raw", "update_schema", "set_key", "damage", "alter_range_partitions", "define_range_partitions", "publish"),
    *("stage_write", "commit_write", "retire", "restore", "cherrypick"),
}
"""Steps that state how rows are stored, or change the schema. Cases about storage have "model": false."""
MODELLED = [
    name
    for name, case in CASES.items()
    if case.get("model", True)
    and "range_partitions" not in case
    and not any(NOT_MODELLED & step.keys() for step in case["steps"])
]


@pytest.mark.parametrize("name", MODELLED)
def test_model_table_returns_the_expected_rows(name: str) -> None:
    case = CASES[name]
    schema = schema_from_json(case["schema"], case.get("required", ()))
    model, snapshots = run_model(case, schema)
    for branch, rows in {"main": case["rows"], **case.get("branches", {})}.items():
        wanted = fingerprint(expected_rows(case, rows, schema), names_of(schema))
        assert fingerprint(model.rows(branch), names_of(schema)) == wanted
    for label, rows in case.get("snapshots", {}).items():
        wanted = fingerprint(expected_rows(case, rows, schema), names_of(schema))
        assert fingerprint(model.rows_at(snapshots[label]), names_of(schema)) == wanted


def build_with_errors(catalog: tf.Catalog, case: Mapping[str, Any]) -> BuiltTable:
    """The table of a case. Steps that must fail are tried, and must leave the table unchanged."""
    built = create(catalog, case)
    for step in case["steps"]:
        if "error" not in step:
            built.run(step)
            continue
        before = built.table.iceberg.metadata_location
        with pytest.raises(getattr(errors, step["error"]["type"]), match=re.escape(step["error"]["names"])):
            built.run(step)
        assert built.table.iceberg.metadata_location == before
    return built


def check_live_deletes(built: BuiltTable, wanted: Mapping[str, int] | None) -> None:
    """Check that the table has the delete files that the case is about."""
    if wanted is not None:
        kinds = Counter(file.kind.value for file in live_files(built.table) if isinstance(file, DeleteFile))
        assert dict(kinds) == dict(wanted)


def check_doors(scan: Scan, expected: list[dict[str, Any]], schema: Schema) -> None:
    """Read the scan to Arrow, in batches, as a count, by DuckDB through the dataset, projected, and filtered."""
    names = names_of(schema)
    wanted = fingerprint(expected, names)
    assert rows_of(scan.to_arrow()) == wanted
    assert rows_of(pa.Table.from_batches(list(scan.to_batches()), scan.schema)) == wanted
    assert scan.count() == len(expected)
    assert_duckdb_agrees(scan, expected, names)
    for name in names:
        assert rows_of(scan.select([name]).to_arrow()) == fingerprint(expected, [name])
    for field in schema.fields:
        for where, matches in filters_on(field, expected):
            found = [row for row in expected if matches(row)]
            assert rows_of(scan.filter(where).to_arrow()) == fingerprint(found, names), where
            assert scan.filter(where).count() == len(found), where


def assert_duckdb_agrees(scan: Scan, expected: list[dict[str, Any]], names: list[str]) -> None:
    """Read the dataset in DuckDB, with and without a filter that is pushed down."""
    plain = [name for name in names if not isinstance(scan.schema.field(name).type, pa.BaseExtensionType)]
    columns = ", ".join(f'"{name}"' for name in plain)
    dataset = DuckDBDataset(scan, marks_rows=True)
    with DUCKDB.cursor() as connection:
        connection.register("dataset", dataset)
        assert connection.sql("SELECT count(*) FROM dataset").fetchall() == [(len(expected),)]
        everything = connection.sql(f"SELECT {columns} FROM dataset").to_arrow_table()
        assert fingerprint(everything.to_pylist(), plain) == fingerprint(expected, plain)
        for condition, keeps_null in (("IS NULL", True), ("IS NOT NULL", False)):
            found = connection.sql(f"SELECT {columns} FROM dataset WHERE {plain[-1]} {condition}").to_arrow_table()
            kept = [row for row in expected if (row.get(plain[-1]) is None) == keeps_null]
            assert fingerprint(found.to_pylist(), plain) == fingerprint(kept, plain)


def filters_on(field: NestedField, expected: list[dict[str, Any]]) -> list[tuple[BooleanExpression, Any]]:
    """Filters, each with a test for the rows that match it, for types with simple literals."""
    name = field.name
    found: list[tuple[BooleanExpression, Any]] = [
        (IsNull(Reference(name)), lambda row: row.get(name) is None),
        (Not(IsNull(Reference(name))), lambda row: row.get(name) is not None),
    ]
    values = [row[name] for row in expected if row.get(name) is not None]
    if not isinstance(field.field_type, IntegerType | LongType | StringType | DecimalType):
        return found
    for value in values[:2]:
        equal = EqualTo(Reference(name), literal(value))
        above = And(GreaterThanOrEqual(Reference(name), literal(value)), Not(equal))
        found.append((equal, lambda row, value=value: row.get(name) == value))
        found.append((above, lambda row, value=value: row.get(name) is not None and row[name] > value))
    return found


def check_snapshots(built: BuiltTable, case: Mapping[str, Any]) -> None:
    """Time travel: check that every named snapshot still has its rows."""
    for label, rows in case.get("snapshots", {}).items():
        scan = built.table.scan(snapshot_id=built.snapshot_ids[label])
        columns = scan.schema.names
        typed = rows_from_json(rows, built.table.metadata.schema(), columns)
        assert rows_of(scan.to_arrow()) == fingerprint(typed, columns), label


def run_model(case: Mapping[str, Any], schema: Schema) -> tuple[ModelTable, dict[str, int]]:
    """Run the operations of a case on the in-memory table. Steps about how rows are stored do nothing here."""
    model = ModelTable(names_of(schema), case.get("key", ()))
    snapshots: dict[str, int] = {}
    for step in case["steps"]:
        name, argument, options = split_step(step)
        branch = step.get("on_branch", "main")
        if "error" in step:
            with pytest.raises(getattr(errors, step["error"]["type"])):
                run_model_step(model, name, argument, options, schema, branch, snapshots)
        else:
            run_model_step(model, name, argument, options, schema, branch, snapshots)
        if "as" in step:
            head = model.head(branch)
            assert head is not None
            snapshots[step["as"]] = head
    return model, snapshots


def run_model_step(
    model: ModelTable,
    name: str,
    argument: Any,
    options: Mapping[str, Any],
    schema: Schema,
    branch: str,
    snapshots: Mapping[str, int],
) -> None:
    if name == "transaction":
        with model.transaction(branch=branch, **options) as transaction:
            for step in argument:
                verb, verb_argument, verb_options = split_step(step)
                call_model(transaction, verb, verb_argument, verb_options, schema)
    elif name in VERBS:
        commit = {key: options[key] for key in ("application_id", "batch_id") if key in options}
        rest = {key: value for key, value in options.items() if key not in (*commit, "mode")}
        with model.commit(branch=branch, **commit) as transaction:
            call_model(transaction, name, argument, rest, schema)
    elif name == "rollback":
        model.rollback(snapshots[argument], branch=branch, **options)
    elif name == "create_branch":
        model.create_branch(argument, snapshots[options["at"]] if "at" in options else None)
    elif name == "create_tag":
        model.create_tag(argument, snapshots[options["at"]] if "at" in options else None)


def call_model(verbs: ModelTransaction, name: str, argument: Any, options: Mapping[str, Any], schema: Schema) -> None:
    rest = {key: value for key, value in options.items() if key != "mode"}
    positional, keywords = verb_arguments(name, argument, rest, schema, verbs.key)
    if name == "delete":
        positional = (matching_in_duckdb(argument, schema),)
    if name == "merge":
        keywords = merging_in_duckdb(keywords, schema)
    if "where" in keywords:
        keywords["where"] = matching_in_duckdb(keywords["where"], schema)
    getattr(verbs, name)(*positional, **keywords)


def matching_in_duckdb(where: str, schema: Schema) -> Any:
    """A test for rows that evaluates the SQL text in another engine."""

    def matches(row: Mapping[str, Any]) -> bool:
        one_row = arrow_table([row], schema, names_of(schema))  # noqa: F841 (DuckDB finds it by name)
        return duckdb.sql(f"SELECT count(*) FROM one_row WHERE {where}").fetchall() == [(1,)]

    return matches
