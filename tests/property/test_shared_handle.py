"""One handle in many threads: each thread sees its own writes, and no write of another is lost."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from soak_figures import count, soak_seed

import tableformat as tf
from tableformat.errors import CommitConflictError

SCHEMA = pa.schema(
    [
        pa.field("thread", pa.int64(), nullable=False),
        pa.field("message", pa.int64(), nullable=False),
        pa.field("part", pa.int64(), nullable=False),
        pa.field("value", pa.string()),
    ]
)
KEY = ["thread", "message", "part"]
THREADS = 6
STEPS = 20
_CHECKED = 0.6
SWITCH_SECONDS = 1e-5
"""Python lets another thread go on after this time; by default five hundred times as late."""
_VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"format-version": "3"},
    {"tableformat.upkeep": "writer", "tableformat.upkeep.files-per-level": "2"},
    {"tableformat.upkeep": "background", "tableformat.upkeep.files-per-level": "2"},
    {"write.delete.prefix-encoding": "equality"},
    {"write.delete.mode": "copy-on-write"},
)


class Writer:
    """One thread and the rows that it has written."""

    def __init__(self, table: tf.Table, number: int, choice: random.Random) -> None:
        self.table, self.number, self.choice = table, number, choice
        self.rows: dict[tuple[int, int], str] = {}
        self.duckdb = duckdb.connect()

    def run(self) -> None:
        for step in range(STEPS):
            # An operation that decides by reading gives up after many lost races, and has changed nothing.
            with suppress(CommitConflictError):
                self._step(f"{self.number}-{step}")
            if self.choice.random() < _CHECKED:
                self._check(self.table.scan(where=f"thread = {self.number}").to_arrow())
            count("operations")
        self._check(self.table.scan(where=f"thread = {self.number}").to_arrow())

    def _step(self, value: str) -> None:
        message = self.choice.randrange(6)
        new = [self._row(message, part, value) for part in range(self.choice.randint(1, 4))]
        written = {(row["message"], row["part"]): value for row in new}
        of_message = [key for key in self.rows if key[0] == message]
        others = {key: row for key, row in self.rows.items() if key not in of_message}
        mine = f"thread = {self.number} AND message = {message}"
        table, arrow = self.table, pa.Table.from_pylist(new, SCHEMA)
        match self.choice.choice(_STEPS):
            case "replace":
                table.replace(arrow, prefix=KEY[:2])
                self.rows = others | written
            case "upsert":
                table.upsert(arrow)
                self.rows |= written
            case "merge":
                merge = table.merge(arrow, on=KEY).when_matched_update_all().when_not_matched_insert_all()
                merge.execute()
                self.rows |= written
            case "insert":
                table.append(arrow, on_duplicate="ignore")
                self.rows = written | self.rows
            case "delete":
                table.delete_prefix({"thread": self.number, "message": message})
                self.rows = others
            case "delete parts":
                table.delete(f"{mine} AND part > 1")
                self.rows = {key: row for key, row in self.rows.items() if key[0] != message or key[1] <= 1}
            case "update":
                table.update(mine, set={"value": f"'{value}'"})
                self.rows |= dict.fromkeys(of_message, value)
            case "transaction":
                with table.transaction() as transaction:
                    transaction.delete_prefix({"thread": self.number, "message": message})
                    transaction.append(arrow)
                self.rows = others | written
            case "properties":
                table.set_properties({f"user.{self.number}": value})
                assert table.properties[f"user.{self.number}"] == value
            case "branch":
                table.create_branch(f"b{value}")
                assert f"b{value}" in table.metadata.refs
            case "expire":
                table.maintenance.expire_snapshots(retain_last=5)
            case "refresh":
                table.refresh()
            case "get":
                for key, row in list(self.rows.items())[:1]:
                    assert table.get(self._row(*key)) == self._row(*key, row)
            case "DuckDB":
                relation = table.scan(where=f"thread = {self.number}").to_duckdb(self.duckdb)
                self._check(relation.to_arrow_table())
            case job:
                getattr(table.maintenance, job)()

    def _row(self, message: int, part: int, value: str | None = None) -> dict[str, Any]:
        key = {"thread": self.number, "message": message, "part": part}
        return key if value is None else {**key, "value": value}

    def _check(self, found: pa.Table) -> None:
        have = {(row["message"], row["part"]): row["value"] for row in found.to_pylist()}
        assert len(have) == found.num_rows
        assert have == self.rows


_STEPS = (
    *("replace", "upsert", "transaction", "delete", "get") * 2,
    *("merge", "insert", "delete parts", "update", "properties", "branch", "expire", "refresh", "DuckDB"),
    *("compact", "convert_deletes", "merge_range_deletes"),
)


@pytest.fixture
def _threads_that_alternate() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.usefixtures("_threads_that_alternate")
def test_threads_sharing_a_handle_see_their_own_writes() -> None:
    """CP-61, CP-4, CP-38, MT-2: every branch stays, and what is not this thread's is the other threads' alone."""
    number = int(soak_seed("1") or 1)
    for example in range(examples(0.02)):
        with fast_lake() as catalog:
            properties = _VARIANTS[(number + example) % len(_VARIANTS)]
            table = catalog.create_table("db.t", SCHEMA, key=KEY, properties=properties)
            writers = [
                Writer(table, thread, random.Random(f"{number} {example} {thread}")) for thread in range(THREADS)
            ]
            with ThreadPoolExecutor(THREADS) as pool:
                for done in [pool.submit(writer.run) for writer in writers]:
                    done.result()
            table.maintenance.wait_for_upkeep()
            rows = table.refresh().scan().to_arrow().to_pylist()
            assert len(rows) == sum(len(writer.rows) for writer in writers)
            made = {f"b{writer.number}" for writer in writers}
            assert {name.partition("-")[0] for name in table.metadata.refs} <= {"main", *made}
            result = table.verify(deep=True)
            assert result.is_clean, result
