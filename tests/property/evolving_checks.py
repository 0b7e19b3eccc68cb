"""Checks of a table of random columns through each entry point: scans, the change feed, lookups, DuckDB, and
descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from evolving_tables import NUMBER_COLUMN, EvolvingTable, arrow_of
from evolving_values import Rows, are_alike, leaves, quoted, rows_in, value_at
from pyiceberg.schema import Schema

import tableformat as tf
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.scan.scan import Scan
from tableformat.testing.key_order import fingerprint, sort_key, sort_keys
from tableformat.testing.replay import EVENT_COLUMNS

WITH_ROW_LINEAGE = 3
_EXACT_DUCKDB = 2
"""DuckDB before 2.0 has no nanoseconds with a zone, and accepts no zero byte in a statement."""


class Checks:
    """The checks of one table; `close` it, because it holds a DuckDB connection."""

    def __init__(self, known: EvolvingTable) -> None:
        self.known = known
        self.random = known.random
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.duckdb.execute("SET arrow_lossless_conversion = true")
        tf.duckdb.attach(self.duckdb, known.catalog, name="lake")

    def close(self) -> None:
        tf.duckdb.detach(self.duckdb, name="lake")
        self.duckdb.close()

    def heads(self) -> None:
        for branch in self.known.branches:
            table = self.known.handle(branch)
            same(table.scan().to_arrow(), self.known.rows_of(table), table.metadata.schema(), f"head of {branch}")

    def all(self) -> None:
        self.heads()
        table = self.known.handle()
        for snapshot_id, rows in self.known.snapshots.items():
            if snapshot_id is not None and table.metadata.snapshot_by_id(snapshot_id) is not None:
                view = table.at(snapshot_id=snapshot_id)
                same(Scan(view).to_arrow(), rows, view.schema, f"snapshot {snapshot_id}")
                where = self.known.condition(view.schema, rows)
                kept = tuple(row for row in rows if where.matches(row.values))
                found = Scan(view, where.sql)
                same(found.to_arrow(), kept, view.schema, f"snapshot {snapshot_id} where {where.sql}")
                assert found.count() == len(kept), f"count of snapshot {snapshot_id} where {where.sql}"
        for branch in self.known.branches:
            self.filters(self.known.handle(branch))
            self.feed(self.known.handle(branch))
        self.in_duckdb(table)
        self.descriptions(table)
        if table.metadata.format_version >= WITH_ROW_LINEAGE:
            self.lineage(table)
        if table.key:
            self.lookups(table)

    def filters(self, table: tf.Table) -> None:
        rows, schema = self.known.rows_of(table), table.metadata.schema()
        for _ in range(4):
            where = self.known.condition(schema, rows)
            self.known.log.append(f"filter {where.sql}")
            kept = tuple(row for row in rows if where.matches(row.values))
            same(table.scan(where.sql).to_arrow(), kept, schema, f"rows where {where.sql}")
            assert table.scan(where.sql).count() == len(kept), f"count where {where.sql}"

    # -- the change feed ----------------------------------------------------------------------------------------------

    def feed(self, table: tf.Table) -> None:
        """CF-1 to CF-6: from any snapshot of the line to any later one, with any filter, in the last one's columns."""
        self.known.rows_of(table)  # Knows the snapshots that upkeep has made meanwhile.
        line = self.known.line(table)
        if not line:
            return
        first = table.metadata.snapshot_by_id(line[0])
        assert first is not None
        until = self.random.randrange(len(line))
        begin = self.random.randrange(0 if had_parent(table.iceberg.io, first) else -1, until + 1)
        is_head = until == len(line) - 1 and self.random.random() < 0.5
        schema = table.metadata.schema() if is_head else table.at(snapshot_id=line[until]).schema
        ends = {
            "from_snapshot_id": None if begin < 0 else line[begin],
            "to_snapshot_id": None if is_head else line[until],
        }
        names = [each.name for each in schema.fields]
        where = self.known.condition(schema, self.known.snapshots[line[until]])
        is_filtered = self.random.random() < 0.5
        self.known.log.append(f"feed {ends} where {where.sql if is_filtered else None}")
        feed = table.changes(where.sql if is_filtered else None, [*names, *EVENT_COLUMNS], **ends)
        events = feed.to_arrow()
        assert sum(map(len, feed.to_batches())) == events.num_rows == feed.count(), "events are counted otherwise"
        found: dict[int, list[dict[str, Any]]] = {}
        for event in events.to_pylist():
            found.setdefault(event["_commit_snapshot_id"], []).append(event)
        assert list(found) == [each for each in line if each in found], "snapshots come in another order"
        parents = dict(zip(line, [None, *line], strict=False))
        for snapshot_id in line[begin + 1 : until + 1]:
            lost_and_new = self._lost_and_new(parents[snapshot_id], snapshot_id)
            if is_filtered:
                lost_and_new = [tuple(row for row in each if where.matches(row.values)) for each in lost_and_new]
            want = [fingerprint(rows_in(each, schema), names) for each in lost_and_new]
            self._compare_events(snapshot_id, found.get(snapshot_id, []), want, names)
        if table.metadata.format_version >= WITH_ROW_LINEAGE:
            self._lineage_of_events(table, {each: parents[each] for each in line[begin + 1 : until + 1]})

    def _lost_and_new(self, parent: int | None, snapshot: int) -> list[Rows]:
        before, after = (self.known.snapshots[each] for each in (parent, snapshot))
        had, has = ({row.number for row in each} for each in (before, after))
        return [
            tuple(row for row in before if row.number not in has),
            tuple(row for row in after if row.number not in had),
        ]

    def _compare_events(
        self, snapshot_id: int, events: list[dict[str, Any]], want: list[Any], names: list[str]
    ) -> None:
        kinds = [event["_change_type"] for event in events]
        assert kinds == sorted(kinds), f"{snapshot_id} deletes after an insert"
        have = [fingerprint([e for e in events if e["_change_type"] == kind], names) for kind in ("delete", "insert")]
        if snapshot_id in self.known.carried:
            # CF-3: a row that copy-on-write carried over is deleted and inserted.
            have, want = ([lost - new, new - lost] for lost, new in (have, want))
        assert have == want, f"events of {snapshot_id}: {have}, not {want}"

    def _lineage_of_events(self, table: tf.Table, parents: Mapping[int, int | None]) -> None:
        """CF-5: a deleted row has the id and the number that it had in the parent."""
        for snapshot_id, parent in parents.items():
            if parent is None or snapshot_id in self.known.carried:
                continue
            view = table.at(snapshot_id=snapshot_id)
            names = [*(each.name for each in view.schema.fields), *ROW_LINEAGE_NAMES]
            feed = table.changes(None, [*names, *EVENT_COLUMNS], from_snapshot_id=parent, to_snapshot_id=snapshot_id)
            before, after = (
                Scan(replace(each, schema=view.schema), None, names).to_arrow().to_pylist()
                for each in (table.at(snapshot_id=parent), view)
            )
            if any(row["_row_id"] is None for row in before):
                continue
            events = feed.to_arrow().to_pylist()
            had, has = ({row["_row_id"] for row in each} for each in (before, after))
            for kind, rows, others in (("delete", before, has), ("insert", after, had)):
                want = fingerprint([row for row in rows if row["_row_id"] not in others], names)
                have = fingerprint([event for event in events if event["_change_type"] == kind], names)
                assert have == want, f"lineage of {kind}: {have}, not {want}"

    def lineage(self, table: tf.Table) -> None:
        """FM-20: row ids and sequence numbers are the same through every entry point, and filters can use them."""
        scan = table.scan(columns=[NUMBER_COLUMN, *ROW_LINEAGE_NAMES])
        want = _sorted(scan.to_arrow())
        given = [row for row in want if row[1] is not None]
        assert len({row[1] for row in given}) == len(given), f"a row id is there twice: {want}"
        dataset, middle = scan.to_dataset(), given[len(given) // 2][1] if given else 0
        assert _sorted(dataset.to_table()) == want, "lineage in a dataset"
        assert _sorted(scan.to_arrow_batch_reader().read_all()) == want, "lineage in a reader"
        kept = [row for row in given if row[1] >= middle]
        where = pc.field("_row_id") >= middle
        assert _sorted(dataset.to_table(filter=where)) == kept, f"lineage filtered from {middle}"
        assert dataset.count_rows(filter=where) == len(kept), f"rows counted from {middle}"
        asked = scan.to_duckdb(self.duckdb).filter(f"_row_id >= {middle}")
        assert _sorted(asked.to_arrow_table()) == kept, f"lineage in DuckDB from {middle}"

    # -- others -------------------------------------------------------------------------------------------------------

    def lookups(self, table: tf.Table) -> None:
        schema, rows = table.metadata.schema(), self.known.rows_of(table)
        key = [schema.find_field(name) for name in table.key]
        for row in rows[:3]:
            wanted = tuple(value_at(row.values, (each,)) for each in key)
            alike = tuple(other for other in rows if are_alike(other.values, row.values, key))
            self.known.log.append(f"get {wanted}")
            if len(alike) == 1:
                same([table.get(wanted)], alike, schema, "get")
            keys = arrow_of(table, (row,), table.key)
            same(table.get_many(keys), alike, schema, "get_many")
        # Many keys are not asked for one by one.
        many = arrow_of(table, rows[:1] * 70 + rows[1:], table.key)
        assert len(table.get_many(many)) >= len(many), "get_many of many keys"

    def descriptions(self, table: tf.Table) -> None:
        """Check that no description raises an error, and that verification finds nothing."""
        found = table.verify(deep=True)
        assert found.is_clean, str(found)
        str(table.maintenance.health())
        where = self.known.condition(table.metadata.schema(), self.known.rows_of(table)).sql
        self.known.log.append(f"explain {where}")
        str(table.scan(where).explain())
        str(table.scan(where).explain(analyze=True))
        for name in ("files", "partitions", "manifests", "entries", "all_files", "position_deletes", "all_entries"):
            getattr(table.inspect, name)()
        for path in leaves(table.metadata.schema().as_struct()):
            if len(path) == 1:
                table.layers(path[0].name).text()

    # -- DuckDB -------------------------------------------------------------------------------------------------------

    def in_duckdb(self, table: tf.Table) -> None:
        tf.duckdb.refresh(self.duckdb)
        self._ask("lake.db.t", self.known.rows_of(table), table.metadata.schema())
        snapshot_id = self.random.choice(list(self.known.snapshots))
        if snapshot_id is not None and table.metadata.snapshot_by_id(snapshot_id) is not None:
            schema = table.at(snapshot_id=snapshot_id).schema
            self._ask(f"lake.db.t AT (VERSION => {snapshot_id})", self.known.snapshots[snapshot_id], schema)

    def _ask(self, source: str, rows: Rows, schema: Schema) -> None:
        where = self.known.condition(schema, rows)
        if int(duckdb.__version__.partition(".")[0]) < _EXACT_DUCKDB and (
            "timestamptz_ns" in str(schema) or "\0" in where.sql
        ):
            return
        kept = tuple(row for row in rows if where.matches(row.values))
        for text, wanted in (("", rows), (f" WHERE {where.sql}", kept)):
            self.known.log.append(f"duckdb SELECT * FROM {source}{text}")
            found = tf.duckdb.sql(self.duckdb, f"SELECT * FROM {source}{text}")
            assert isinstance(found, duckdb.DuckDBPyRelation)
            same(found.to_arrow_table(), wanted, schema, f"DuckDB{text}")
            self._aggregate(source, text, wanted, schema)

    def _aggregate(self, source: str, text: str, rows: Rows, schema: Schema) -> None:
        path = self.random.choice(list(leaves(schema.as_struct())))
        name = quoted(path)
        values = [value for row in rows if (value := value_at(row.values, path)) is not None]
        query = f"SELECT count(*) AS n, count({name}) AS m, min({name}) AS low, max({name}) AS high FROM {source}{text}"
        self.known.log.append(f"duckdb {query}")
        asked = tf.duckdb.sql(self.duckdb, query)
        assert isinstance(asked, duckdb.DuckDBPyRelation)
        (found,) = _plain(asked.to_arrow_table().to_pylist())
        assert (found["n"], found["m"]) == (len(rows), len(values)), f"{query}: {found} of {values}"
        for name, choose in (("low", min), ("high", max)):
            want = choose(values, key=sort_key, default=None)
            assert sort_key(found[name]) == sort_key(_plain(want)), f"{query}: {found}, not {want!r}"


def _sorted(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=sort_keys)


def same(found: Any, rows: Rows, schema: Schema, what: str) -> None:
    """Raise AssertionError unless these are the rows, in any order, in the columns of the schema."""
    names = [each.name for each in schema.fields]
    if isinstance(found, pa.Table):
        assert found.column_names == names, f"{what}: columns {found.column_names}"
        found = found.to_pylist()
    have, want = (fingerprint(_plain(each), names) for each in (found, rows_in(rows, schema)))
    assert have == want, f"{what}: missing {dict(want - have)}, too many {dict(have - want)}"


def _plain(value: Any) -> Any:
    """Nanoseconds as microseconds, as in DuckDB."""
    match value:
        case pd.Timestamp() if not value.nanosecond:
            return value.to_pydatetime()
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(map(_plain, value))
    return value
