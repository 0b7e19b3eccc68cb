"""Object stores whose answers are errors, late, partial, wrong or missing: all or nothing, and no secret in any text.

`HYPOTHESIS_PROFILE=soak` injects every fault into every request of every action; the short form into a few of them.
"""

from __future__ import annotations

import logging
import os
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from fault_proxy import Fault, FaultProxy
from hypothesis import settings
from long_forms import crossed, every_other
from pyarrow.fs import AwsStandardS3RetryStrategy, S3RetryStrategy
from soak_figures import count, soak_seed
from test_object_store import FILE_IOS, make_few_attempts, s3_options  # noqa: F401 - the fixture

import tableformat as tf
from tableformat.errors import CommitStateUnknownError, CorruptFileError, StorageError, TableFormatError
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema([("id1", pa.string()), ("id2", pa.int64()), ("v", pa.string())])
SECRET, TOKEN = "sentinel/Secret+Key0123456789abcdefghijk", "sentinel-session-token-0123456789"
BEFORE: Final = [("a", 1, "x"), ("a", 2, "again"), ("c", 1, "z")]
IS_SOAK: Final = settings().max_examples >= 1_000
SEED: Final = soak_seed("1")
CASES: Final = int(os.environ.get("SOAK_CASES", "400")) if IS_SOAK else 1
FOREVER: Final = 1_000
IMPATIENT: Final = {"s3.connect-timeout": "2", "s3.request-timeout": "2"}
REQUESTS_OF_SHORT_FORM: Final = 12

pytestmark = pytest.mark.slow


class TwoAttempts(AwsStandardS3RetryStrategy):
    """Arrow's client gives up soon, so that the test gets its error."""

    def __init__(self) -> None:
        super().__init__(max_attempts=2)


assert issubclass(TwoAttempts, S3RetryStrategy)


@dataclass(frozen=True)
class Action:
    """A call, and the rows after it."""

    run: Callable[..., Any]
    after: list[tuple[str, int, str]]
    is_named: bool = True
    """Whether it takes an application id and a batch id."""


def rows(*tuples: tuple[str, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in tuples], schema=SCHEMA)


ACTIONS: Final = {
    "append": Action(lambda table, **ids: table.append(rows(("d", 1, "new")), **ids), [*BEFORE, ("d", 1, "new")]),
    "replace": Action(
        lambda table, **ids: table.replace(rows(("a", 9, "new")), prefix=["id1"], **ids), [("a", 9, "new"), BEFORE[2]]
    ),
    "upsert": Action(lambda table, **ids: table.upsert(rows(("a", 1, "new")), **ids), [("a", 1, "new"), *BEFORE[1:]]),
    "delete_prefix": Action(lambda table, **ids: table.delete_prefix({"id1": "a"}, **ids), BEFORE[2:]),
    "delete by scan": Action(lambda table, **ids: table.delete("v = 'x'", mode="scan", **ids), BEFORE[1:]),
    "append new": Action(
        lambda table, **ids: table.append(rows(("a", 1, "n"), ("d", 1, "n")), on_duplicate="ignore", **ids),
        [*BEFORE, ("d", 1, "n")],
    ),
    "convert": Action(lambda table: table.maintenance.convert_deletes(), BEFORE, is_named=False),
    "compact": Action(lambda table: table.maintenance.compact(rewrite_all=True), BEFORE, is_named=False),
    "expire": Action(lambda table: table.maintenance.expire_snapshots(older_than=10**15), BEFORE, is_named=False),
    "orphans": Action(lambda table: table.maintenance.remove_orphan_files(), BEFORE, is_named=False),
    "scan": Action(live_tuples, BEFORE, is_named=False),
    "verify": Action(lambda table: table.verify(deep=True), BEFORE, is_named=False),
}


@pytest.fixture(scope="module")
def proxy(s3_options: dict[str, str]) -> Iterator[FaultProxy]:  # noqa: F811
    patch = pytest.MonkeyPatch()
    make_few_attempts(patch)
    with FaultProxy(s3_options["s3.endpoint"]).running() as running:
        yield running
    patch.undo()


class World:
    """A table in the store with four kinds of files, written while nothing fails."""

    def __init__(self, proxy: FaultProxy, directory: Path, name: str, file_io: str) -> None:
        self._directory, self._name = directory, name
        self._options = {
            "s3.endpoint": proxy.address,
            "s3.access-key-id": "sentinel-id",
            "s3.secret-access-key": SECRET,
            "s3.session-token": TOKEN,
            "s3.region": "us-east-1",
            "s3.connect-timeout": "60",
            "s3.request-timeout": "60",
            "s3.retry-strategy-impl": f"{__name__}.TwoAttempts",
            "py-io-impl": file_io,
        }
        with self.opened() as catalog:
            catalog.create_namespace("db")
            table = catalog.create_table(
                "db.t",
                SCHEMA,
                key=["id1", "id2"],
                properties={
                    "read.parquet.page-checksum-verification": "true",
                    "commit.retry.num-retries": "1",
                    "write.metadata.compression-codec": "gzip",
                },
            )
            table.append(rows(("a", 1, "x"), ("a", 2, "y"), ("b", 1, "gone"), ("c", 1, "z")))
            table.delete_prefix({"id1": "b"})
            table.upsert(rows(("a", 2, "again")))

    def opened(self, **options: str) -> tf.Catalog:
        catalog_file = str(self._directory / f"{self._name}.db")
        return tf.open_catalog(f"s3://lake/{self._name}", catalog_file=catalog_file, **{**self._options, **options})

    def check(self, proxy: FaultProxy, action: Action, fault: Fault | None, first: int, times: int) -> int:
        """Run the action with the fault; the number of requests that it made."""
        names = {"application_id": "writer", "batch_id": 7} if action.is_named else {}
        error: Exception | None = None
        with self.opened(**IMPATIENT) as catalog:
            table = catalog.load_table("db.t")
            with proxy.armed(fault, first=first, times=times):
                try:
                    action.run(table, **names)
                except Exception as raised:  # noqa: BLE001 - judged below
                    error = raised
                requests = len(proxy.requests)
        if error is not None:
            refuse_secrets("".join(traceback.format_exception(error)), repr(error))
            if not isinstance(error, TableFormatError):
                raise AssertionError("an error that is not the library's") from error
        with self.opened() as catalog:
            table = catalog.load_table("db.t")
            found = live_tuples(table)
            is_done = found == action.after
            assert is_done or found == BEFORE
            assert is_done or error is not None, "no error, and nothing was done"
            if error is not None and action.after != BEFORE and not isinstance(error, CommitStateUnknownError):
                assert not is_done, f"done, although it says: {error!r}"
            again = action.run(table, **names)
            assert live_tuples(table.refresh()) == action.after
            if action.is_named:
                assert again.already_applied == is_done
            assert table.verify(deep=True).findings == ()
        return requests


def refuse_secrets(*texts: str) -> None:
    for text in texts:
        assert SECRET not in text
        assert TOKEN not in text


@pytest.mark.parametrize("file_io", every_other(FILE_IOS, 1))
def test_failing_store_leaves_commits_atomic(
    proxy: FaultProxy, tmp_path: Path, file_io: str, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-13, CP-14: every error is the library's and true, a repeated batch is applied once, no read is wrong."""
    draw = random.Random(f"{SEED} {file_io}")
    caplog.set_level(logging.DEBUG, logger="tableformat")
    lengths: dict[str, int] = {}
    for number in range(CASES):
        name = draw.choice(list(ACTIONS))
        world_name = f"faults-{file_io.rsplit('.', 1)[1].lower()}-{number}"
        if IS_SOAK and name not in lengths:
            lengths[name] = World(proxy, tmp_path, f"{world_name}-counted", file_io).check(
                proxy, ACTIONS[name], None, 0, 0
            )
        # A client that times out takes two seconds for it.
        fault = draw.choice([*Fault] if IS_SOAK else [each for each in Fault if each is not Fault.HANG])
        first, times = draw.randrange(max(lengths.get(name, REQUESTS_OF_SHORT_FORM), 1)), draw.choice((1, 2, FOREVER))
        world = World(proxy, tmp_path, world_name, file_io)
        count("store faults")
        try:
            world.check(proxy, ACTIONS[name], fault, first, times)
        except BaseException as error:
            error.add_note(f"case {number} of seed {SEED}: {name}, {fault} at request {first}, {times} times")
            raise
    refuse_secrets(caplog.text)
    assert proxy.unchecked_uploads == []
    print(f"\n{CASES} faults, seed {SEED}: {file_io.rsplit('.', 1)[1]}, 0 violations")


@pytest.mark.parametrize("file_io", every_other(FILE_IOS))
def test_bit_flip_during_upload_is_rejected_by_the_store(proxy: FaultProxy, tmp_path: Path, file_io: str) -> None:
    """Every file is sent with a checksum, so the store rejects it, and nothing is changed."""
    world = World(proxy, tmp_path, f"refused-{file_io.rsplit('.', 1)[1].lower()}", file_io)
    with world.opened(**IMPATIENT) as catalog:
        for path in ("/data/", ".metadata.json"):
            table = catalog.load_table("db.t")
            with proxy.armed(Fault.FLIPPED_UPLOAD, times=FOREVER, path=path), pytest.raises(TableFormatError):
                table.append(rows(("d", 1, "new")))
    with world.opened() as catalog:
        table = catalog.load_table("db.t")
        assert live_tuples(table) == BEFORE
        assert table.verify(deep=True).findings == ()
    assert proxy.unchecked_uploads == []


@pytest.mark.parametrize(("file_io", "verb"), crossed(FILE_IOS, ["append", "delete by scan"]))
def test_bit_flip_in_store_without_checksums_is_detected_on_read(
    proxy: FaultProxy, tmp_path: Path, file_io: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-11, MT-74: the store has another file; to read it is an error, and a verification names it. Where the store
    keeps the checksum that was stated, fsspec's client compares it."""
    world = World(proxy, tmp_path, f"stored-{file_io.rsplit('.', 1)[1].lower()}-{verb[:6]}", file_io)
    monkeypatch.setattr(proxy, "verifies_uploads", False)
    with world.opened() as catalog:
        table = catalog.load_table("db.t")
        with proxy.armed(Fault.FLIPPED_UPLOAD, times=FOREVER, path="/data/"):
            ACTIONS[verb].run(table)
    with world.opened() as catalog:
        table = catalog.load_table("db.t")
        with pytest.raises((CorruptFileError, StorageError), match="checksum"):
            live_tuples(table)
        if file_io.endswith("FsspecFileIO"):
            with pytest.raises(StorageError, match="If the error persists, the file is damaged"):
                table.verify(deep=True)
            return
        assert [finding.kind for finding in table.verify(deep=True).findings] == [FindingKind.WRONG_CHECKSUM]
