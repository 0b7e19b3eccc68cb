"""External failures: bad input, corrupt files, killed writers. Nothing is committed, and no file is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat import errors
from tableformat.deletes.codecs import packed_spans
from tableformat.metadata.columns import read_columns
from tableformat.metadata.manifests import manifest_list, manifest_reader
from tableformat.storage.bounded_cache import BoundedCache

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("part", pa.string()), pa.field("small", pa.int32())]
)


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id", "part"], partition_by=["bucket(2, id)"])
    table.append(pa.table({"id": [1, 2], "part": ["a", "b"], "small": [1, 2]}, schema=SCHEMA.set(1, _required("part"))))
    return table


def _required(name: str) -> pa.Field:
    return pa.field(name, pa.string(), nullable=False)


def files_of(table: tf.Table) -> set[str]:
    root = Path(table.location.removeprefix("file://"))
    return {str(path) for path in root.rglob("*") if path.is_file()}


ROW = {"id": [3], "part": ["c"]}
BAD_CALLS: dict[str, tuple[type[Exception], str, Callable[[tf.Table], object]]] = {
    "unknown column": (errors.UnknownColumnError, "'prt'", lambda t: t.append(pa.table({**ROW, "prt": [1]}))),
    "wrong type": (errors.SchemaMismatchError, "'id'", lambda t: t.append(pa.table({**ROW, "id": ["three"]}))),
    "value too large": (errors.RowsRefusedError, "'small'", lambda t: t.append(pa.table({**ROW, "small": [2**40]}))),
    "null key": (
        errors.RowsRefusedError,
        "'part'",
        lambda t: t.upsert(pa.table({"id": [3], "part": pa.nulls(1)}), missing="null"),
    ),
    "missing key": (errors.SchemaMismatchError, "'part'", lambda t: t.append(pa.table({"id": [3]}))),
    "prefix not leading": (errors.InvalidKeyError, "id, part", lambda t: t.delete_prefix({"part": "a"})),
    "prefix of no key": (errors.UnknownColumnError, "'small'", lambda t: t.delete_prefix({"small": 1})),
    "replace by no prefix": (errors.InvalidKeyError, "part", lambda t: t.replace(pa.table(ROW), prefix=["part"])),
    "bounds swapped": (errors.InvalidKeyError, "above", lambda t: t.delete_range(lower=(5,), upper=(1,))),
    "bound of another type": (errors.InvalidKeyError, "'id'", lambda t: t.delete_range(lower=("x",), upper=None)),
    "row outside interval": (
        errors.RowsRefusedError,
        "outside",
        lambda t: t.replace_interval(pa.table(ROW), on="id", lower=5, upper=9),
    ),
    "matched twice": (
        errors.DuplicateKeyError,
        "'id': 1",
        lambda t: t.merge(pa.table({"id": [1, 1]}), on="id").when_matched_delete("true").execute(),
    ),
    "no SQL": (errors.InvalidPredicateError, "SQL", lambda t: t.delete("id = = 3")),
    "subquery": (errors.InvalidPredicateError, "", lambda t: t.delete("id IN (SELECT 1)")),
    "not a blind delete": (errors.InvalidPredicateError, "equality", lambda t: t.delete("id > 3", mode="equality")),
    "unknown mode": (errors.InvalidArgumentError, "'fast'", lambda t: t.delete("id = 3", mode="fast")),
    "duplicate": (
        errors.DuplicateKeyError,
        "'id': 1",
        lambda t: t.append(pa.table({"id": [1], "part": ["a"]}), on_duplicate="error"),
    ),
    "no snapshot": (errors.SnapshotNotFoundError, "77", lambda t: t.rollback(snapshot_id=77)),
    "no tag": (errors.SnapshotNotFoundError, "'v1'", lambda t: t.scan(tag="v1")),
    "batch without writer": (errors.InvalidArgumentError, "together", lambda t: t.append(pa.table(ROW), batch_id=1)),
    "rows of nothing": (errors.InvalidArgumentError, "int", lambda t: t.append(5)),
    "operation code": (
        errors.InvalidArgumentError,
        "'X'",
        lambda t: t.apply_changes(pa.table({**ROW, "_op": ["X"], "_ts": [1]})),
    ),
    "drop of a key column": (ValueError, "id", lambda t: t.update_schema().delete_column("id").commit()),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_invalid_call_names_the_cause_and_writes_no_file(table: tf.Table, name: str) -> None:
    error, subject, call = BAD_CALLS[name]
    files, snapshot_id = files_of(table), table.snapshot_id
    with pytest.raises(error) as raised:
        call(table)
    assert subject in str(raised.value)
    assert files_of(table) == files
    assert table.refresh().snapshot_id == snapshot_id


def test_failing_source_stream_writes_no_file(table: tf.Table) -> None:
    files = files_of(table)

    def batches():
        yield pa.record_batch({"id": list(range(10, 20)), "part": ["x"] * 10})
        raise ConnectionError("the source went away")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64()), ("part", pa.string())]), batches())

    def replace_in_a_transaction() -> None:
        with table.transaction() as tx:
            tx.delete_prefix({"id": 1})
            tx.append(pa.table({"id": [9], "part": ["y"]}))
            tx.replace(reader, prefix=["id"])

    with pytest.raises(ConnectionError, match="the source went away"):
        replace_in_a_transaction()
    assert files_of(table) == files
    assert table.refresh().scan().count() == 2


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "overwritten":
            path.write_bytes(b"x" * len(content))
        case "missing":
            path.unlink()


@pytest.mark.parametrize("how", ["truncated", "overwritten", "missing"])
@pytest.mark.parametrize("kind", ["data", "position", "equality", "range", "manifest"])
def test_corrupt_file_raises_error_with_its_name(table: tf.Table, kind: str, how: str, monkeypatch) -> None:
    """DA-8"""
    monkeypatch.setattr(packed_spans, "MAX_SPANS", 0)
    table.append(pa.table({"id": [7, 7, 7, 7], "part": ["p", "q", "r", "s"]}))
    table.delete("part = 'p'", mode="scan")
    table.delete_rows(pa.table({"id": [7], "part": ["q"]}))
    # More prefixes than a manifest entry carries (RD-13).
    table.delete_prefix(pa.table({"id": [7] * 8, "part": list("rtuvwxyz")}))
    files = table.inspect.files()
    manifests = table.inspect.manifests()
    if kind == "manifest":
        location = manifests["path"][0].as_py()
    else:
        location = files.filter(pa.compute.equal(files["kind"], kind))["file_path"][0].as_py()
    damage(Path(location.removeprefix("file://")), how)

    # Another FileIO, so that files that were read before are not in its caches; the manifest caches belong to the
    # process.
    caches = (manifest_reader, "_cache"), (manifest_list, "_cache"), (read_columns, "_raw"), (read_columns, "_chunks")
    for module, name in caches:
        monkeypatch.setattr(module, name, BoundedCache(2**20))
    with pytest.raises(errors.CorruptFileError) as raised:
        tf.read_metadata(table.iceberg.metadata_location).scan().to_arrow()
    assert location in str(raised.value)


def test_newer_format_version_is_rejected(table: tf.Table, tmp_path: Path) -> None:
    text = Path(table.iceberg.metadata_location.removeprefix("file://")).read_text()
    newer = tmp_path / "v9.metadata.json"
    newer.write_text(
        text.replace('"format-version":2', '"format-version":9').replace('"format-version": 2', '"format-version": 9')
    )
    with pytest.raises(errors.UnsupportedFeatureError, match="9"):
        tf.read_metadata(newer)


WRITER = """
import sys
import pyarrow as pa
import tableformat as tf

table = tf.open_catalog(sys.argv[1]).load_table("db.t")
for batch in range(20):
    print(batch, flush=True)
    rows = pa.table({"id": [1000 + batch] * 3, "part": ["a", "b", "c"]})
    table.replace(rows, prefix=["id"], application_id="writer", batch_id=batch)
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([(0, 0.0), (9, 0.008)], id="twice"),
        pytest.param([(0, 0.0), (4, 0.004), (9, 0.008), (15, 0.012)], id="often", marks=pytest.mark.long),
    ],
)
def test_killed_writer_restarts_and_commits_each_batch_once(
    table: tf.Table, tmp_path: Path, kills: list[tuple[int, float]]
) -> None:
    """Exactly once: killed at any moment and started from the beginning, the writer commits each batch one time."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "lake")]
    for last_batch, moment_seconds in kills:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while process.stdout.readline() != f"{last_batch}\n":
                assert process.poll() is None
            # Somewhere in the batch that it has begun.
            time.sleep(moment_seconds)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert table.refresh().scan(where="id >= 1000").count() % 3 == 0
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "done"
    counted = table.refresh().scan(where="id >= 1000").to_arrow().group_by("id").aggregate([([], "count_all")])
    assert sorted(counted["id"].to_pylist()) == list(range(1000, 1020))
    assert set(counted["count_all"].to_pylist()) == {3}


@pytest.mark.slow
def test_concurrent_appends_of_two_processes_are_all_kept(table: tf.Table, tmp_path: Path) -> None:
    source = WRITER.replace('"writer"', "sys.argv[2]").replace("1000 +", "int(sys.argv[3]) +")
    processes = [
        subprocess.Popen([sys.executable, "-c", source, str(tmp_path / "lake"), name, first], stdout=subprocess.PIPE)
        for name, first in (("one", "1000"), ("two", "2000"))
    ]
    assert [process.communicate()[0].splitlines()[-1] for process in processes] == [b"done"] * 2
    assert table.refresh().scan(where="id >= 1000").count() == 2 * 20 * 3
