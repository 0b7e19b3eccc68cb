"""The public API: exported names, the parameters of operations, and the fields of results.

A change here is a change for every user. A new parameter with a default, a new method or a new field is one more line
below.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.maintenance.maintenance import Maintenance
from tableformat.maintenance.verification.findings import VerificationFinding, VerifyResult
from tableformat.operations.inspect import Inspect
from tableformat.operations.options import CommitKeywords

EXPORTED = [
    "Bound",
    "Catalog",
    "CatalogTransaction",
    "Changes",
    "CommitResult",
    "ConvertResult",
    "ErasureCertificate",
    "OpenTelemetryReporter",
    "RangePartitions",
    "Scan",
    "ScanExplanation",
    "ScanPlan",
    "StagedFiles",
    "StagedWrite",
    "Table",
    "TableFormatError",
    "Transaction",
    "bound",
    "duckdb",
    "errors",
    "list_partitions",
    "open_catalog",
    "read_metadata",
    "serve",
]
ERRORS = [
    "AlreadyCommittedError",
    "AlreadyExistsError",
    "BatchPartlyAppliedError",
    "CatalogNotFoundError",
    "CommitConflictError",
    "CommitExitError",
    "CommitInterruptedError",
    "CommitStateUnknownError",
    "CopiedLakeError",
    "CorruptFileError",
    "DuplicateKeyError",
    "StaleRowsError",
    "ForeignWriterWarning",
    "InvalidArgumentError",
    "InvalidKeyError",
    "InvalidPredicateError",
    "MovedLakeError",
    "NamespaceNotFoundError",
    "NotFoundError",
    "PropertyWithoutEffectWarning",
    "ReadOnlyLakeError",
    "RowNotFoundError",
    "RowsRefusedError",
    "RevertConflictError",
    "ScopeChangedError",
    "SchemaMismatchError",
    "SnapshotNotFoundError",
    "StorageError",
    "TableFormatError",
    "TableNotFoundError",
    "OperationCancelledError",
    "PartialCommitError",
    "SeveralTablesError",
    "TaskFailedError",
    "UncoveredRowsError",
    "UnknownColumnError",
    "UnknownOptionError",
    "UnsupportedFeatureError",
    "ViewNotFoundError",
]
COMMIT = ("application_id", "batch_id", "snapshot_properties", "if_unchanged_since")

VERBS = {
    "append": "rows, *, on_duplicate='allow', on_refused='fail'",
    "delete": "where, *, mode='auto'",
    "delete_prefix": "prefix, *, mode='auto'",
    "delete_range": "*, lower=None, upper=None, on=None, mode='auto', everything=False",
    "delete_ranges": "ranges, *, mode='auto'",
    "delete_rows": "keys",
    "replace": "rows, *, prefix=None, order_by=None, cover=None, on_refused='fail', on_stale='ignore'",
    "replace_interval": "rows, *, on, lower, upper, everything=False, blind=False, on_refused='fail'",
    "replace_partition": "rows, partition, *, on_refused='fail'",
    "upsert": "rows, *, order_by=None, missing='error', on_refused='fail', on_stale='ignore'",
    "update": "where, *, set",
    "merge": "source, *, on, source_alias='source', target_alias='target'",
    "apply_changes": "changes, *, op='_op', order_by='_ts', envelope=None, key='table', on_refused='fail', "
    "missing='error', on_stale='ignore'",
    "overwrite": "rows, *, where=None, allow_outside=False, on_refused='fail'",
}
DRY_RUNS = {name: "" for name in VERBS if name not in {"append", "merge"}} | {"delete_rows": ", *"}
"""Verbs that delete rows: a table's may be tried, a transaction's may not; a merge's `execute` may."""
TABLE = {
    **{
        name: f"{parameters}{f'{DRY_RUNS[name]}, dry_run=False' if name in DRY_RUNS else ''}, **commit"
        for name, parameters in VERBS.items()
    },
    "add_files": "file_paths, *, check_duplicate_files=True, partitions=None, **commit",
    "transaction": "**commit",
    "new_write": "*, kind='append', prefix=None, order_by=None, on=None, lower=None, upper=None, on_stale='ignore'",
    "commit": "write, staged, **commit",
    "scan": "where=None, columns=None, *, snapshot_id=None, as_of=None, tag=None, branch=None, limit=None",
    "changes": "where=None, columns=None, *, from_snapshot_id=None, to_snapshot_id=None, "
    "from_timestamp=None, to_timestamp=None, consumer=None, limit=None, range_drops='rows'",
    "layers": "column=None, *, to_scale=True, snapshot_id=None, as_of=None, tag=None, branch=None",
    "get": "key",
    "head": "n=10, columns=None",
    "to_pandas": "**options",
    "to_polars": "*, lazy=False",
    "get_many": "keys",
    "history": "",
    "verify": "*, deep=False, keys=False, snapshot_id=None, erased=None, progress=None",
    "remove_properties": "*names",
    "rollback": "*, snapshot_id=None, as_of=None, replay=False",
    "set_current_snapshot": "snapshot_id=None, *, ref_name=None",
    "fast_forward": "branch, to",
    "create_tag": "name, snapshot_id=None, *, max_ref_age_ms=None",
    "create_branch": "name, snapshot_id=None",
    "drop_tag": "name",
    "drop_branch": "name",
    "revert": "snapshot_id, *, dry_run=False, **commit",
    "restore_rows": "where, *, snapshot_id=None, as_of=None, tag=None, dry_run=False, **commit",
    "update_schema": "",
    "merge_schema": "schema",
    "update_spec": "",
    "set_key": "columns",
    "add_check": "name, condition",
    "drop_check": "name",
    "refresh": "",
}
TABLE_ATTRIBUTES = {
    "checks",
    "inspect",
    "key",
    "location",
    "maintenance",
    "metadata",
    "name",
    "properties",
    "range_partitions",
    "schema",
    "snapshot_id",
}
CATALOG = {
    "create_namespace": "namespace, *, properties=None, exist_ok=False",
    "drop_namespace": "namespace",
    "list_namespaces": "parent=(), *, recursive=False",
    "namespace_exists": "namespace",
    "create_table": "identifier, schema, *, key=(), partition_by=(), properties=None, location=None, "
    "range_partitions=None, exist_ok=False",
    "write": "identifier, rows, *, mode='append', schema_mode='strict', key=None, partition_by=None, "
    "properties=None, **commit",
    "read": "identifier, where=None, columns=None",
    "sql": "text",
    "load_table": "identifier, *, branch='main'",
    "list_tables": "namespace=None",
    "list_views": "namespace=None",
    "drop_view": "identifier",
    "table_exists": "identifier",
    "drop_table": "identifier, *, purge=False",
    "rename_table": "from_identifier, to_identifier",
    "register_table": "identifier, metadata_location",
    "adopt_table": "identifier, *, key=None, dry_run=False",
    "erase": "rows, *, everywhere=True, dry_run=False, progress=None",
    "relocate": "to=None, *, tables=(), replace=False, outside=None, dry_run=False, progress=None, **options",
    "report_to": "reporter",
    "transaction": "**commit",
    "close": "",
}
SCAN = {
    "to_arrow": "",
    "to_batches": "",
    "to_arrow_batch_reader": "",
    "to_dataset": "",
    "to_pandas": "**options",
    "to_polars": "*, lazy=False",
    "to_duckdb": "connection=None, name=None",
    "count": "",
    "plan": "",
    "explain": "*, analyze=False",
    "filter": "where",
    "select": "columns",
}
CHANGES = {name: parameters for name, parameters in SCAN.items() if name != "explain"}
STAGED_WRITE = {"write": "batches, *, on_refused='fail'", "cover": "prefixes", "abort": "staged"}
INSPECT = {"files", "data_files", "delete_files", "snapshots", "history", "manifests", "partitions", "refs", "entries"}

FIELDS = {
    tf.CommitResult: [
        "snapshot_id",
        "sequence_number",
        "added_row_count",
        "deleted_row_count",
        "committed_at",
        "read_row_count",
        "read_bytes",
        "added_data_files_count",
        "added_delete_files_count",
        "written_bytes",
        "attempts",
        "duration_seconds",
        "already_applied",
        "estimate",
        "refused",
    ],
    tf.ConvertResult: [
        "snapshot_id",
        "added_position_delete_files_count",
        "removed_equality_delete_files_count",
        "removed_range_delete_files_count",
        "removed_data_files_count",
        "deleted_row_count",
        "rewritten_bytes",
        "duration_seconds",
        "dry_run",
    ],
    VerifyResult: [
        "table",
        "branch",
        "deep",
        "snapshot_count",
        "manifest_count",
        "data_file_count",
        "delete_file_count",
        "row_count",
        "unchecksummed_file_count",
        "duration_seconds",
        "findings",
    ],
    VerificationFinding: ["kind", "severity", "file", "what", "next_step", "command", "snapshot_ids"],
    tf.StagedFiles: ["data_files", "delete_files", "row_count", "written_bytes", "refused", "prefixes"],
}
JOBS = {
    "health": "",
    "verify": "*, deep=False, keys=False, snapshot_id=None, erased=None, progress=None",
    "repair": "*, dry_run=False, progress=None",
    "upkeep": "*, executor='local', dry_run=False, progress=None",
    "wait_for_upkeep": "timeout_seconds=None",
    "convert_deletes": (
        "*, where=None, only_paths=None, partial_progress=True, max_commits=10, executor='local', "
        "dry_run=False, progress=None"
    ),
    "apply_retention": "*, dry_run=False, now=None",
    "drop_dead_deletes": "*, dry_run=False, progress=None",
    "merge_range_deletes": "*, dry_run=False, progress=None",
    "rewrite_position_delete_files": (
        "*, where=None, only_paths=None, min_input_files=2, rewrite_all=False, dry_run=False, progress=None"
    ),
    "publish": ("source='ingest', target='main', *, executor='local', dry_run=False, progress=None"),
    "expire_snapshots": (
        "*, older_than=None, retain_last=None, snapshot_ids=(), dry_run=False, "
        "clean_expired_files=True, clean_expired_metadata=False, progress=None"
    ),
    "plan_compaction": "**options",
    "compact": (
        "*, dry_run=False, partial_progress=True, max_commits=10, executor='local', only_paths=None, "
        "drop_dead_deletes=True, progress=None, **options"
    ),
    "rewrite_manifests": "*, dry_run=False, spec_id=None, sort_by=None, progress=None",
    "compute_table_stats": ("columns=None, *, snapshot_id=None, dry_run=False, executor='local', progress=None"),
    "erase": "prefix=None, *, where=None, everywhere=True, dry_run=False, progress=None",
    "remove_orphan_files": (
        "*, older_than=None, location=None, dry_run=False, allow_recent=False, file_list=None, "
        "equal_schemes=None, equal_authorities=None, prefix_mismatch_mode='error', progress=None"
    ),
    "run": ("*, time_budget_seconds=None, byte_budget=None, dry_run=False, only=None, executor='local', progress=None"),
}


def parameters(function: Any) -> str:
    """The parameters as they would be written, without `self` and types."""
    signature = inspect.signature(function)
    kept = [each.replace(annotation=each.empty) for each in signature.parameters.values() if each.name != "self"]
    return str(inspect.Signature(kept))[1:-1]


def test_exported_names() -> None:
    assert tf.__all__ == EXPORTED
    assert set(EXPORTED) <= set(dir(tf))
    assert all(getattr(tf, name) is not None for name in EXPORTED)
    with pytest.raises(AttributeError, match="open_catalogue"):
        _ = tf.open_catalogue


def test_exported_functions() -> None:
    assert parameters(tf.open_catalog) == "name_or_path, **options"
    assert parameters(tf.read_metadata) == "location, **properties"
    assert parameters(tf.duckdb.attach) == (
        "connection, catalog, *, name='lake', snapshot_id=None, as_of=None, tag=None, branch=None"
    )
    assert parameters(tf.duckdb.sql) == "connection, text"
    assert parameters(tf.duckdb.refresh) == "connection, *, name=None"


@pytest.mark.parametrize(("name", "expected"), TABLE.items())
def test_methods_of_a_table(name: str, expected: str) -> None:
    assert parameters(getattr(tf.Table, name)) == expected


@pytest.mark.parametrize(("name", "expected"), VERBS.items())
def test_transaction_has_every_operation_of_a_table(name: str, expected: str) -> None:
    """Arguments that identify the writer belong to the transaction, not to its operations."""
    assert parameters(getattr(tf.Transaction, name)) == expected


def test_methods_of_a_catalog_transaction() -> None:
    assert parameters(tf.CatalogTransaction.table) == "name, *, branch='main'"
    assert isinstance(tf.CatalogTransaction.results, property)


@pytest.mark.parametrize(("name", "expected"), CATALOG.items())
def test_methods_of_a_catalog(name: str, expected: str) -> None:
    assert parameters(getattr(tf.Catalog, name)) == expected


@pytest.mark.parametrize(("name", "expected"), SCAN.items())
def test_methods_of_a_scan(name: str, expected: str) -> None:
    assert parameters(getattr(tf.Scan, name)) == expected


@pytest.mark.parametrize(("name", "expected"), CHANGES.items())
def test_methods_of_a_change_feed(name: str, expected: str) -> None:
    assert parameters(getattr(tf.Changes, name)) == expected


@pytest.mark.parametrize(("name", "expected"), STAGED_WRITE.items())
def test_methods_of_a_staged_write(name: str, expected: str) -> None:
    assert parameters(getattr(tf.StagedWrite, name)) == expected


def test_common_options_of_write_operations() -> None:
    assert tuple(get_type_hints(CommitKeywords)) == COMMIT


def test_attributes() -> None:
    properties = {name for name, value in inspect.getmembers(tf.Table) if isinstance(value, property)}
    assert properties >= TABLE_ATTRIBUTES
    assert set(dir(Inspect)) >= {*INSPECT, "deletes_of"}
    assert parameters(Maintenance.verify) == parameters(tf.Table.verify)
    assert isinstance(tf.Transaction.result, property)


@pytest.mark.parametrize(("name", "expected"), JOBS.items())
def test_jobs(name: str, expected: str) -> None:
    assert parameters(getattr(Maintenance, name)) == expected


def test_every_job_is_listed() -> None:
    assert {name for name, value in vars(Maintenance).items() if callable(value) and name[0] != "_"} == set(JOBS)


@pytest.mark.parametrize(("result", "names"), FIELDS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_fields_of_results(result: type, names: list[str]) -> None:
    assert dataclasses.is_dataclass(result)
    found = [field.name for field in dataclasses.fields(result)]
    assert [name for name in found if name in names] == names


def test_results_are_frozen() -> None:
    result = tf.CommitResult(snapshot_id=1, sequence_number=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.snapshot_id = 2  # type: ignore[misc]


def test_errors() -> None:
    classes = {name: value for name, value in vars(tf.errors).items() if isinstance(value, type)}
    found = {name for name, value in classes.items() if issubclass(value, Exception)}
    assert found >= set(ERRORS)
    assert all(issubclass(classes[name], tf.TableFormatError | UserWarning) for name in found)
    assert issubclass(tf.errors.InvalidArgumentError, ValueError)
    assert issubclass(tf.errors.NotFoundError, LookupError)
    tree = ast.get_docstring(ast.parse(Path(tf.errors.__file__).read_text()))
    assert tree is not None
    assert [name for name in sorted(found) if name not in tree] == [], (
        "the tree in the module's docstring shows every error"
    )


def test_every_public_name_has_a_docstring() -> None:
    classes = [tf.Table, tf.Catalog, tf.Scan, tf.Changes, tf.Transaction, tf.CatalogTransaction, tf.StagedWrite]
    classes += [Maintenance, Inspect]
    unexplained = [
        f"{each.__name__}.{name}"
        for each in classes
        for name, value in vars(each).items()
        if not name.startswith("_") and callable(value) and not inspect.getdoc(value)
    ]
    assert unexplained == []


def test_scanning_process_does_not_import_engines_jobs_or_clients(tmp_path: Path) -> None:
    """Decision 37: what each command and each worker pays before it does anything."""
    code = (
        "import sys, tableformat as tf\n"
        f"catalog = tf.open_catalog({str(tmp_path)!r})\n"
        "catalog.create_namespace('db')\n"
        "import pyarrow as pa\n"
        "table = catalog.create_table('db.t', pa.schema([('id', pa.int64())]), key=['id'])\n"
        "table.append(pa.table({'id': [1, 2]}))\n"
        "assert catalog.load_table('db.t').scan().to_arrow().num_rows == 2\n"
        "unwanted = ('duckdb', 'sqlglot', 'requests', 'fsspec', 'pyiceberg.catalog.rest', 'tableformat.changes',\n"
        "    'tableformat.snapshot_layers', 'tableformat.relocation', 'tableformat.maintenance.compaction')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def imported_by(code: str, *names: str) -> list[str]:
    """Those of the modules that a new process has imported after running the code."""
    asked = f"import sys\n{code}\nprint([name for name in {names!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(run.stdout.splitlines()[-1].replace("'", '"'))
    return found


def test_open_catalog_does_not_import_arrow_or_operations(tmp_path: Path) -> None:
    """Decision 37."""
    code = f"import tableformat as tf; tf.open_catalog({str(tmp_path)!r}).list_tables()"
    heavy = ("pyarrow", "numpy", "pandas", "fastavro", "duckdb", "tableformat.table", "tableformat.scan.scan")
    assert imported_by(code, *heavy) == []


def test_load_table_does_not_import_readers_or_operations(tmp_path: Path) -> None:
    """Decision 37."""
    with tf.open_catalog(str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    code = f"import tableformat as tf; tf.open_catalog({str(tmp_path)!r}).load_table('db.t').metadata"
    heavy = (
        "duckdb",
        "sqlglot",
        "tableformat.scan.scan",
        "tableformat.operations.staging",
    )
    assert imported_by(code, *heavy) == []


def test_import_keeps_garbage_collector_settings() -> None:
    """Decision 37. Objects that the program has frozen stay frozen."""
    code = (
        "import gc, tableformat\n"
        "tableformat.open_catalog\n"
        "young = len(gc.get_objects(0)) + len(gc.get_objects(1))\n"
        "print(gc.isenabled(), young < len(gc.get_objects(2)) / 10, gc.get_freeze_count())\n"
        "gc.freeze()\n"
        "gc.disable()\n"
        "tableformat.Scan\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
        "gc.enable()\n"
        "tableformat.read_metadata\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True True 0\nFalse True\nTrue True\n"


def test_testing_modules_are_packaged() -> None:
    import tableformat.testing

    modules = {module.name for module in pkgutil.iter_modules(tableformat.testing.__path__)}
    assert {"model", "strategies", "table_builder"} <= modules
