"""Totals in a summary are optional, and other writers omit them or write wrong ones: no result depends on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from foreign_summaries import stating, with_wrong_totals, without_totals
from maintenance_tables import keyed_table, rows
from published_tables import branched
from pyiceberg.table.snapshots import Summary

import tableformat as tf
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Pin, Session
from tableformat.commit.change import is_keyed
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples

pytestmark = pytest.mark.parametrize("stated", [without_totals, with_wrong_totals])
Change = Callable[[Summary], Summary]
LEFT = [("a", 2, "x"), ("a", 3, "new")]


def pending(tmp_path: Path, stated: Change, version: str = "2") -> tf.Table:
    """Rows 1, 2 and 3, with a pending range delete of 1 and an equality delete of 3; every snapshot states `stated`."""
    table = keyed_table(tmp_path, properties={"format-version": version})
    with stating(stated):
        table.append(rows("a", [1, 2, 3]))
        table.delete_prefix({"id1": "a", "id2": 1})
        table.upsert(rows("a", [3], "new"))
    return table.refresh()


@pytest.mark.parametrize("version", ["2", "3"])
def test_wrong_totals_do_not_affect_rows_and_counts(tmp_path: Path, stated: Change, version: str) -> None:
    """FM-18"""
    table = pending(tmp_path, stated, version)
    assert live_tuples(table) == LEFT
    assert (table.scan().count(), len(table.scan().to_arrow()), table.scan().to_dataset().count_rows()) == (2, 2, 2)
    assert table.scan(where="id2 = 1").count() == 0
    assert sorted(table.inspect.delete_files()["kind"].to_pylist()) == ["equality", "range"]
    assert table.maintenance.health().partial_file_count == 1


def test_wrong_totals_do_not_affect_spark_counts(tmp_path: Path, stated: Change) -> None:
    """SP-4: the count that Spark pushes down, once positions are known."""
    pending(tmp_path, stated).maintenance.convert_deletes()
    session = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    pin = Pin.from_json(handler_of("load_table")(session, Request({"table": ["db", "t"]}))["pin"])
    arguments = {
        "pin": pin.to_json(),
        "functions": [{"function": "count-star"}],
        "predicates": [],
        "options": {},
        "settings": {},
    }
    (stream,) = handler_of("aggregate")(session, Request(arguments)).parts
    assert pa.ipc.open_stream(stream).read_all().column(0).to_pylist() == [2]


def test_wrong_totals_do_not_affect_conversion(tmp_path: Path, stated: Change) -> None:
    """MT-13"""
    table = pending(tmp_path, stated)
    table.maintenance.convert_deletes()
    assert live_tuples(table.refresh()) == LEFT
    assert not any(is_keyed(delete) for delete in live_delete_files(table))


def test_wrong_totals_do_not_affect_publishing(tmp_path: Path, stated: Change) -> None:
    """MT-33"""
    main, ingest = branched(tmp_path)
    with stating(stated):
        ingest.delete_prefix({"id1": "a", "id2": 3})
        main.append(rows("b", [1]))
        ingest.delete_prefix({"id1": "b"})
    main.refresh().maintenance.publish()
    assert live_tuples(main.refresh()) == [("a", number, "x") for number in range(10) if number != 3]
    assert not any(is_keyed(delete) for delete in live_delete_files(main))
