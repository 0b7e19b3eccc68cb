"""Ctrl-C at any moment after the catalog has accepted a commit: files that the table may reference are kept, and the
error reports the commit."""

from __future__ import annotations

import itertools
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
from maintenance_tables import keyed_table, rows
from pyiceberg.exceptions import CommitFailedException

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.commit_status import CommitStatus, Sent
from tableformat.errors import CommitExitError, CommitInterruptedError, CommitStateUnknownError
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.reports.report import CommitReport, Report
from tableformat.storage.location import local_path
from tableformat.storage.storage import delete_if_present
from tableformat.testing.replacing import replaced

Act = Callable[[tf.Table], Any]
TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]

ACTS: dict[str, Act] = {
    "append": lambda table: table.append(rows("z", [100])),
    "upsert": lambda table: table.upsert(rows("a", [4])),
    "delete_prefix": lambda table: table.delete_prefix({"id1": "a", "id2": 4}),
    "delete": lambda table: table.delete("id2 = 4", mode="scan"),
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "convert_deletes": lambda table: table.maintenance.convert_deletes(),
    "merge_range_deletes": lambda table: table.maintenance.merge_range_deletes(),
    "rewrite_manifests": lambda table: table.maintenance.rewrite_manifests(),
    "run": lambda table: table.maintenance.run(only=["compact"]),
}

STATISTICS: dict[bool, Act] = {
    False: lambda table: table.maintenance.compute_table_stats(),
    True: lambda table: compute_partition_statistics(table.iceberg, table.snapshot_id or 0),
}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[tf.Table]:
    """A table of six files; two range deletes cover rows of some of them."""
    found = keyed_table(tmp_path, partition_by=("bucket(2, id2)",))
    for number in range(6):
        found.append(rows("a", [number]))
    for number in (0, 3):
        found.delete_prefix({"id1": "a", "id2": number})
    yield found
    assert found.catalog is not None
    found.catalog.close()


@pytest.mark.parametrize("act", ACTS)
def test_ctrl_c_during_commit_report_keeps_files(table: tf.Table, act: str) -> None:
    """CP-51: the files of the commit used to be removed, or the error did not mention the commit."""

    def interrupt(report: Report) -> None:
        if isinstance(report, CommitReport):
            raise KeyboardInterrupt

    assert isinstance(table.catalog, tf.Catalog)
    head = table.snapshot_id
    table.catalog.report_to(interrupt)
    with pytest.raises(BaseException, match=r"the commit to db\.t \(branch main\) was applied as snapshot") as told:
        ACTS[act](table)
    assert isinstance(told.value, CommitInterruptedError)
    table.catalog.report_to(None)
    assert table.refresh().snapshot_id != head
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("has_partitions", [False, True])
def test_interrupted_statistics_commit_keeps_its_file(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], has_partitions: bool
) -> None:
    """CP-51: the file used to be removed although the table already referenced it."""
    commit = EmbeddedCatalog.commit_table

    def interrupted(*arguments: Any) -> None:
        commit(*arguments)
        raise error

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", interrupted)
    with pytest.raises(BaseException, match=r"did not confirm whether the change of db\.t was applied") as told:
        STATISTICS[has_partitions](table)
    assert isinstance(told.value, CommitStateUnknownError)
    assert isinstance(told.value, CommitInterruptedError if error is KeyboardInterrupt else CommitExitError)
    assert isinstance(told.value, error)
    metadata = table.refresh().metadata
    (file,) = metadata.partition_statistics if has_partitions else metadata.statistics
    assert Path(local_path(file.statistics_path) or "").exists()


def _transaction(table: tf.Table) -> None:
    with table.transaction() as tx:
        tx.append(rows("c", [1, 2]))
        tx.delete_prefix({"id1": "c", "id2": 1})


def _deletes(table: tf.Table) -> None:
    for number in (1, 2):
        table.delete_prefix({"id1": "a", "id2": number})


PREPARED: dict[str, tuple[Act, Act]] = {
    "append": (lambda _table: None, ACTS["append"]),
    "transaction": (lambda _table: None, _transaction),
    "delete": (lambda table: table.append(rows("b", [1, 2])), lambda table: table.delete("id1 = 'b'", mode="scan")),
    "compact": (lambda _table: None, ACTS["compact"]),
    "convert_deletes": (ACTS["delete_prefix"], ACTS["convert_deletes"]),
    "merge_range_deletes": (_deletes, ACTS["merge_range_deletes"]),
    "statistics": (ACTS["append"], STATISTICS[False]),
    "partition statistics": (ACTS["append"], STATISTICS[True]),
}
"""For each name: a function that prepares the table so that the operation has work to do, and the operation."""


class _Interrupts:
    """From the answer of the catalog on: Ctrl-C before the bytecode with a number, in code of ours or of contextlib."""

    def __init__(self, *, follow_calls: bool) -> None:
        self._follow_calls = follow_calls
        self.left = 0
        self.place = ""

    def begin(self) -> None:
        frame = sys._getframe(2)
        while frame is not None and "/tests/" not in frame.f_code.co_filename:
            self._follow(frame)
            frame = frame.f_back  # type: ignore[assignment] # the first one has none
        sys.settrace(self._entered)

    def _follow(self, frame: FrameType) -> None:
        if frame.f_code.co_filename.endswith("contextlib.py") or "/tableformat/" in frame.f_code.co_filename:
            frame.f_trace, frame.f_trace_opcodes = self._at, True

    def _entered(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        del event, argument
        if self._follow_calls:
            self._follow(frame)
        return self._at if frame.f_trace is not None else None

    def _at(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        del argument
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self._at


@pytest.mark.parametrize("act", ["append", *(pytest.param(act, marks=pytest.mark.long) for act in PREPARED)])
@pytest.mark.parametrize("follow_calls", [False, pytest.param(True, marks=pytest.mark.long)])
def test_ctrl_c_at_any_bytecode_after_the_response_keeps_files(
    table: tf.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str, follow_calls: bool
) -> None:
    """CP-51: between the return of the commit and the next line of its caller it removed what the table names."""
    commit, interrupts = EmbeddedCatalog.commit_table, _Interrupts(follow_calls=follow_calls)
    prepare, run = PREPARED[act]

    def answered(*arguments: Any) -> Any:
        answer = commit(*arguments)
        interrupts.begin()
        return answer

    prepare(table)
    lake, before = tmp_path / "lake", tmp_path / "before"
    shutil.copytree(lake, before)
    for number in itertools.count():
        shutil.rmtree(lake)
        shutil.copytree(before, lake)
        interrupts.left = number
        with monkeypatch.context() as patch, tf.open_catalog(str(lake)) as catalog:
            tried = catalog.load_table("db.t")
            patch.setattr(EmbeddedCatalog, "commit_table", answered)
            try:
                run(tried)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            assert tried.refresh().verify().is_clean, interrupts.place
        if interrupts.left >= 0:
            break


@pytest.mark.slow
def test_system_exit_during_a_commit_is_propagated(tmp_path: Path) -> None:
    """CP-51: the exit from a signal handler used to become an ordinary error, which services log before they
    continue."""
    keyed_table(tmp_path).append(rows("a", [1]))
    script = f"""
import sys, time
import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

table = tf.open_catalog({str(tmp_path / "lake")!r}).load_table("db.t")
table.append(table.scan().to_arrow())
table.delete_prefix({{"id1": "z"}})
commit = EmbeddedCatalog.commit_table
def exiting(*arguments):
    commit(*arguments)
    sys.exit(7)
EmbeddedCatalog.commit_table = exiting
for report in table.maintenance.run(only=["convert_deletes", "compact"]):
    pass
print("went on")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, ""), done.stderr


def test_failed_cleanup_after_commit_does_not_fail_the_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-18, CP-51: if the table is upgraded concurrently, the position delete file is replaced by a vector. The
    operation used to raise an error, and removed the vector that it had committed."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1, 2, 3]))
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    commit = EmbeddedCatalog.commit_table

    def after_an_upgrade(*arguments: Any) -> Any:
        monkeypatch.setattr(EmbeddedCatalog, "commit_table", commit)
        other.upgrade()
        raise CommitFailedException("overtaken")

    def refuse(*_arguments: Any) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", after_an_upgrade)
    with replaced(delete_if_present, refuse), caplog.at_level(logging.WARNING):
        table.delete("id2 = 2", mode="scan")
    assert "could not remove" in caplog.text
    assert sorted(table.refresh().scan().to_arrow()["id2"].to_pylist()) == [1, 3]
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("snapshot_id", [None, 17], ids=["metadata alone", "a snapshot"])
@pytest.mark.parametrize("sent", [Sent.IN_FLIGHT, Sent.APPLIED])
def test_interrupt_reports_commit_only_if_catalog_confirmed_it(sent: Sent, snapshot_id: int | None) -> None:
    """CP-51: a caller that repeats a change that happened would apply it twice."""
    status = CommitStatus()
    status.sent, status.snapshot_id = sent, snapshot_id
    told = str(status.told(KeyboardInterrupt()))
    assert ("interrupted afterwards" in told) == (sent is Sent.APPLIED)
    assert ("did not confirm whether" in told) == (sent is Sent.IN_FLIGHT)
    assert ("17" in told) == (snapshot_id is not None)
