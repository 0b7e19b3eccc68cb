"""The main job end to end, with each of its writers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from demo_rows import PLAN, expected_rows
from new_lakes import new_lake
from rich.console import Console

from tableformat import open_catalog
from tableformat.demo.java_runtime import INSTALL_HINT
from tableformat.demo.messages import CALENDARS, explode_messages, message_batch
from tableformat.demo.run import TABLE, run_demo
from tableformat.errors import InvalidArgumentError
from tableformat.testing.replay import check_feed


def read_rows(directory: Path) -> dict[tuple[str, int], list[tuple]]:
    with open_catalog(str(directory / "lake")) as catalog:
        rows: dict[tuple[str, int], list[tuple]] = {}
        for row in catalog.load_table(TABLE).scan().to_arrow().to_pylist():
            rows.setdefault((row["id1"], row["id2"]), []).append(tuple(row.values())[2:])
    return {key: sorted(of_key, key=lambda row: row[0]) for key, of_key in rows.items()}


def run(directory: Path, writer: str):
    return run_demo(directory, writer, Console(file=StringIO()), PLAN)


def test_local_writer_leaves_the_newest_message_of_every_key(tmp_path: Path) -> None:
    report = run(tmp_path / "demo", "local")
    assert expected_rows(PLAN) == read_rows(tmp_path / "demo")
    assert report.is_consistent
    assert report.delete_file_counts == {"range": 3}
    assert set(report.delete_file_counts_after) <= {"position"}
    assert "RANGE_DELETES_PARQUET" in report.refused_before_conversion


def test_changes_of_the_stream_rebuild_every_batch(tmp_path: Path) -> None:
    """CF-6: replacements with an unknown number of rows appear row by row; the conversion has no events."""
    run(tmp_path / "demo", "local")
    with open_catalog(str(tmp_path / "demo" / "lake")) as catalog:
        events = check_feed(catalog.load_table(TABLE).view)
    batches = events.group_by("_commit_snapshot_id").aggregate([])
    assert batches.num_rows == PLAN.batch_count
    assert {"insert", "delete"} == set(events["_change_type"].to_pylist())


STREAM_WITH_SPARK = """
import sys
from io import StringIO
from pathlib import Path
from rich.console import Console
from tableformat.demo.messages import MessagePlan
from tableformat.demo.run import run_demo

plan = MessagePlan(batch_count=3, messages_per_batch=300, key_count=400)
print(run_demo(Path(sys.argv[1]), "spark", Console(file=StringIO()), plan).is_consistent)
"""


@pytest.mark.long
@pytest.mark.spark
def test_spark_stream_leaves_the_newest_message_of_every_key(tmp_path: Path, needs_java: None) -> None:
    """In a separate process: otherwise every later Spark test would use its JVM, which lacks their jar."""
    command = [sys.executable, "-c", STREAM_WITH_SPARK, str(tmp_path / "demo")]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout.splitlines()[-1:] == ["True"], finished.stderr
    assert expected_rows(PLAN) == read_rows(tmp_path / "demo")


def test_demo_rejects_a_directory_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"thesis\.tex"):
        run(tmp_path, "local")
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_demo_uses_local_writer_without_java(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tableformat.demo.java_runtime.find_java", lambda: None)
    output = StringIO()
    report = run_demo(tmp_path / "demo", "auto", Console(file=output, width=1000), PLAN)
    assert report.writer == "local"
    assert "Spark is skipped" in output.getvalue()
    assert INSTALL_HINT in output.getvalue()


def test_an_empty_message_deletes_the_rows_of_its_key(tmp_path: Path) -> None:
    """A message with four empty lists replaces its rows by no rows."""
    from tableformat.demo import stream_local
    from tableformat.demo.messages import KEY, TABLE_SCHEMA

    messages = tmp_path / "messages"
    messages.mkdir()
    lists = '"open_on": ["2026-01-01"], "closed_on": [], "delivery_on": [], "holiday_on": []'
    full = f'{{"message_number": 0, "id1": "a", "id2": 1, {lists}}}'
    empty = full.replace('["2026-01-01"]', "[]").replace('"message_number": 0', '"message_number": 1')
    (messages / "batch-0.json").write_text(full + "\n" + full.replace('"a"', '"b"'))
    (messages / "batch-1.json").write_text(empty)
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table(TABLE, TABLE_SCHEMA, key=KEY)
    stream_local.run_stream(table, messages, lambda _result: None)
    assert table.scan(columns=["id1"]).to_arrow().to_pydict() == {"id1": ["b"]}


def test_repeated_stream_changes_nothing(tmp_path: Path) -> None:
    """Exactly once: the same batches under the same application id are committed before."""
    from tableformat.demo import stream_local

    run(tmp_path / "demo", "local")
    table = open_catalog(str(tmp_path / "demo" / "lake")).load_table(TABLE)
    snapshot_id, results = table.snapshot_id, []
    stream_local.run_stream(table, tmp_path / "demo" / "messages", results.append)
    assert [result.already_applied for result in results] == [True] * 3
    assert table.refresh().snapshot_id == snapshot_id
    shutil.rmtree(tmp_path / "demo")


def test_exploded_messages_match_without_spark() -> None:
    rows = explode_messages(message_batch(PLAN, 0)).to_pylist()
    longest = {
        message["message_number"]: max(len(message[name]) for name in CALENDARS)
        for message in message_batch(PLAN, 0).to_pylist()
    }
    expected = [(number, num_cal) for number, count in longest.items() for num_cal in range(1, count + 1) or [None]]
    assert Counter((row["message_number"], row["num_cal"]) for row in rows) == Counter(expected)


def test_demo_does_not_overwrite_an_existing_lake(tmp_path: Path) -> None:
    with open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("shop")
    with pytest.raises(InvalidArgumentError, match="another directory"):
        run(tmp_path, "local")
    with open_catalog(str(tmp_path / "lake")) as catalog:
        assert catalog.list_namespaces() == ["shop"]
