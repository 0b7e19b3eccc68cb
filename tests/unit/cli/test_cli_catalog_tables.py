"""The command line: `drop`, `rename`, `set-property` and `branch`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, make_lake

from tableformat.cli import confirm


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def listed(lake: Lake) -> list[str]:
    return [each["identifier"] for each in lake.json("ls")["tables"]]


def test_printed_undo_command_restores_a_dropped_table(lake: Lake) -> None:
    run = lake.run("drop", TABLE, "--yes")
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.startswith(f"{TABLE} dropped; its files were kept.\nUndo: tableformat ")
    assert listed(lake) == ["db.empty"]
    words = run.stdout.split()
    assert lake.run(*words[words.index("register-table") :]).status == 0
    with lake.table() as table:
        assert table.scan().count() == 9


def test_a_purged_table_leaves_no_file(lake: Lake) -> None:
    with lake.table() as table:
        location = Path(table.location.removeprefix("file://"))
    assert [path for path in location.rglob("*.parquet") if path.is_file()]
    dropped = lake.json("drop", TABLE, "--purge", "--yes")
    assert dropped == {"table": TABLE, "purged": True, "metadata_location": None}
    assert [path for path in location.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (("drop", TABLE), f"Drop {TABLE}? Its files are kept."),
        (("drop", TABLE, "--purge"), f"Drop {TABLE} and remove its files?"),
        (("branch", TABLE, "audit", "--drop"), f"Remove branch audit of {TABLE}?"),
    ],
)
def test_destructive_commands_ask_and_answer_no_changes_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], question: str
) -> None:
    lake.json("branch", TABLE, "audit")
    run = lake.run(*words)
    assert run.status == 2
    assert "pass --yes to confirm" in " ".join(run.stderr.split())
    asked: list[str] = []
    monkeypatch.setattr(confirm, "require_terminal", lambda _what: None)
    monkeypatch.setattr(confirm.typer, "confirm", lambda text, **_options: bool(asked.append(text)))
    run = lake.run(*words)
    assert (run.status, run.stdout, run.stderr) == (1, "", "Nothing was changed.\n")
    assert asked == [question]
    assert [each["branch"] for each in lake.json("branch", TABLE)["branches"]] == ["audit", "main"]


def test_a_table_is_renamed(lake: Lake) -> None:
    assert lake.json("rename", TABLE, "db.days") == {"table": "db.days", "previous_name": TABLE}
    assert listed(lake) == ["db.days", "db.empty"]
    assert "exists" in lake.error("rename", "db.days", "db.empty")["message"]
    assert lake.error("rename", TABLE, "db.x")["type"] == "TableNotFoundError"


def test_properties_are_set_and_removed(lake: Lake) -> None:
    size = "write.target-file-size-bytes"
    run = lake.run("set-property", TABLE, f"{size}=1000000", "note=a=b")
    assert run.stdout == f"{TABLE}: {size} = 1000000, note = a=b.\n"
    properties = lake.json("set-property", TABLE, "--unset", "note", "--unset", "owner")["properties"]
    assert properties[size] == "1000000"
    assert "note" not in properties
    assert "owner" not in properties
    assert lake.error("set-property", TABLE, "--unset", "nte")["type"] == "UnknownOptionError"
    for words in ((), ("a=b", "--unset", size), ("a",)):
        assert lake.run("set-property", TABLE, *words).status == 2


def test_branches_are_created_listed_and_removed(lake: Lake) -> None:
    with lake.table() as table:
        first = table.metadata.refs["first"].snapshot_id
        newest = table.snapshot_id
    assert lake.json("branch", TABLE, "audit")["snapshot_id"] == newest
    assert lake.json("branch", TABLE, "old", first) == {"table": TABLE, "branch": "old", "snapshot_id": first}
    assert lake.json("branch", TABLE)["branches"] == [
        {"branch": "audit", "snapshot_id": newest},
        {"branch": "main", "snapshot_id": newest},
        {"branch": "old", "snapshot_id": first},
    ]
    assert str(first) in lake.run("branch", TABLE).stdout
    assert lake.run("branch", TABLE, "old", "--drop", "--yes").stdout == f"{TABLE}: branch old removed.\n"
    assert lake.error("branch", TABLE, "old", "--drop", "--yes")["type"] == "SnapshotNotFoundError"
    assert lake.run("branch", TABLE, "--drop").status == 2
    assert lake.run("branch", TABLE, "audit", first, "--drop").status == 2
    assert "no branches" in lake.run("branch", "db.empty").stderr
