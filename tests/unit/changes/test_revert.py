"""CP-89, CP-90: `revert` undoes one commit, `restore_rows` a part of the table."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every
from typer.testing import CliRunner

import tableformat as tf
from tableformat.changes import revert
from tableformat.cli.main import app
from tableformat.errors import (
    CommitConflictError,
    InvalidArgumentError,
    InvalidKeyError,
    RevertConflictError,
    SnapshotNotFoundError,
)
from tableformat.operations.staging.draft import Draft

LINES = pa.schema(
    [
        pa.field("order", pa.int64(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("tags", pa.map_(pa.string(), pa.list_(pa.int64()))),
    ]
)
Row = tuple[int, int, float | None]


@pytest.fixture(params=every(2, ["3", "2"]))
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("shop")
    return catalog.create_table(
        "shop.lines",
        LINES,
        key=["order", "line"],
        partition_by=["bucket(3, order)"],
        properties={"format-version": request.param},
    )


def rows(*given: Row) -> pa.Table:
    return pa.Table.from_pylist(
        [{"order": order, "line": line, "price": price, "tags": [("a", [line])]} for order, line, price in given],
        schema=LINES,
    )


def content(table: tf.Table, **at: int) -> list[Row]:
    found = table.scan(columns=["order", "line", "price"], **at).to_arrow().to_pylist()  # type: ignore[arg-type]
    return sorted((row["order"], row["line"], row["price"]) for row in found)


def test_revert_restores_and_removes_rows(table: tf.Table) -> None:
    table.append(rows((1, 1, 1.0), (1, 2, 2.0), (2, 1, 3.0)))
    mistake = table.replace(rows((1, 1, 9.0), (3, 1, 9.0)), prefix=["order"])
    table.append(rows((4, 1, 4.0)))
    assert mistake.snapshot_id is not None

    assert table.revert(mistake.snapshot_id, dry_run=True).dry_run
    assert (3, 1, 9.0) in content(table)
    table.revert(mistake.snapshot_id)
    assert content(table) == [(1, 1, 1.0), (1, 2, 2.0), (2, 1, 3.0), (4, 1, 4.0)]
    assert table.get((1, 2))["tags"] == [("a", [2])]


@pytest.mark.parametrize("seed", every(3, range(6)))
def test_revert_undoes_any_commit_or_is_rejected(table: tf.Table, seed: int) -> None:
    """CP-89: each key that the commit changed gets the rows of the parent, unless a later commit changed it."""
    dice = random.Random(seed)
    commits: list[int] = []

    def some(count: int) -> pa.Table:
        keys = dice.sample([(order, line) for order in range(4) for line in range(4)], count)
        return rows(*((order, line, float(dice.randrange(3))) for order, line in keys))

    operations: list[Callable[[], tf.CommitResult]] = [
        lambda: table.append(some(3)),
        lambda: table.upsert(some(3)),
        lambda: table.delete_prefix({"order": dice.randrange(4)}),
        lambda: table.delete(f"line = {dice.randrange(4)}"),
        lambda: table.replace(some(2), prefix=["order"]),
    ]
    for _ in range(8):
        result = dice.choice(operations)()
        if result.snapshot_id is not None and result.attempts:
            commits.append(result.snapshot_id)
        if dice.random() < 0.3:
            table.maintenance.convert_deletes()
        if dice.random() < 0.2:
            table.maintenance.compact(rewrite_all=True)

    parents = {each.snapshot_id: each.parent_snapshot_id for each in table.metadata.snapshots}
    undone = dice.choice(commits)
    now, after = content(table), content(table, snapshot_id=undone)
    before = content(table, snapshot_id=parents[undone]) if parents[undone] else []  # type: ignore[arg-type]
    feed = table.changes(from_snapshot_id=parents[undone], to_snapshot_id=undone, columns=["order", "line"])
    changed = {(row["order"], row["line"]) for row in feed.to_arrow().to_pylist()}

    def of(state: list[Row]) -> list[Row]:
        return [row for row in state if row[:2] in changed]

    if not changed:
        with pytest.raises(InvalidArgumentError):
            table.revert(undone)
    elif of(now) != of(after):
        with pytest.raises(RevertConflictError):
            table.revert(undone)
    else:
        table.revert(undone)
        now = sorted([row for row in now if row[:2] not in changed] + of(before))
    assert content(table.refresh()) == now


def test_the_first_commit_can_be_reverted(table: tf.Table) -> None:
    first = table.append(rows((1, 1, 1.0))).snapshot_id
    table.append(rows((2, 1, 2.0)))
    assert first is not None
    table.revert(first)
    assert content(table) == [(2, 1, 2.0)]


def test_concurrent_change_of_reverted_key_conflicts(table: tf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows((1, 1, 1.0)))
    mistake = table.delete_prefix({"order": 1}).snapshot_id
    assert mistake is not None
    other = table.catalog.load_table("shop.lines")  # type: ignore[union-attr]

    stage = revert.revert
    landed: list[tf.CommitResult] = []

    def lands_first(draft: Draft, *, snapshot_id: int) -> None:
        stage(draft, snapshot_id=snapshot_id)
        if not landed:
            landed.append(other.append(rows((1, 1, 7.0))))

    monkeypatch.setattr(revert, "revert", lands_first)
    with pytest.raises((CommitConflictError, RevertConflictError)):
        table.revert(mistake)
    assert content(table.refresh()) == [(1, 1, 7.0)]


def test_invalid_reverts_are_rejected(table: tf.Table) -> None:
    table.append(rows((1, 1, 1.0)))
    old = table.append(rows((2, 1, 1.0))).snapshot_id
    assert old is not None
    with pytest.raises(InvalidArgumentError):
        table.revert(17)
    table.maintenance.compact(rewrite_all=True)
    job = table.refresh().snapshot_id
    assert job is not None
    with pytest.raises(InvalidArgumentError):
        table.revert(job)
    table.maintenance.expire_snapshots(older_than=timedelta(0), retain_last=2)
    with pytest.raises(SnapshotNotFoundError):
        table.refresh().revert(old)


def test_revert_requires_a_key(tmp_path: Path) -> None:
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.write("shop.events", {"id": 1})
    table = catalog.load_table("shop.events")
    assert table.snapshot_id is not None
    with pytest.raises(InvalidKeyError):
        table.revert(table.snapshot_id)


def test_revert_on_branches_and_with_renamed_columns(table: tf.Table) -> None:
    table.append(rows((1, 1, 1.0)))
    table.create_branch("fix")
    branch = table.catalog.load_table("shop.lines", branch="fix")  # type: ignore[union-attr]
    mistake = branch.delete("line = 1").snapshot_id
    with branch.update_schema() as update:
        update.rename_column("price", "amount").add_column("note", pa.string())
    branch.revert(mistake)
    assert branch.get((1, 1)) == {"order": 1, "line": 1, "amount": 1.0, "tags": [("a", [1])], "note": None}
    with pytest.raises(InvalidArgumentError):
        table.refresh().revert(mistake)


def test_restore_rows_by_condition(table: tf.Table) -> None:
    """CP-90."""
    table.append(rows((1, 1, 1.0), (1, 2, 2.0), (2, 1, 3.0)))
    table.create_tag("good")
    table.upsert(rows((1, 1, 9.0), (1, 3, 9.0), (2, 1, 9.0)))
    result = table.restore_rows('"order" = 1', tag="good")
    assert result.added_row_count == 2
    assert content(table) == [(1, 1, 1.0), (1, 2, 2.0), (2, 1, 9.0)]
    with pytest.raises(InvalidArgumentError):
        table.restore_rows("line = 1")


def test_revert_and_restore_commands(table: tf.Table, tmp_path: Path) -> None:
    table.append(rows((1, 1, 1.0), (2, 1, 2.0)))
    good = table.snapshot_id
    mistake = table.delete("line = 1").snapshot_id
    lake = ["--catalog", str(tmp_path / "lake"), "--json"]

    dry = CliRunner().invoke(app, [*lake, "revert", "shop.lines", str(mistake), "--dry-run"])
    told = json.loads(dry.stdout)
    assert (told["dry_run"], told["added_row_count"], told["deleted_row_count"]) == (True, 2, 0)
    restored = [*lake[:2], "restore-rows", "shop.lines", "--where", "true", "--snapshot", str(good), "--dry-run"]
    assert "0 rows would be deleted and 2 rows added" in CliRunner().invoke(app, restored).stdout
    done = CliRunner().invoke(
        app, [*lake, "restore-rows", "shop.lines", "--where", '"order" = 1', "--snapshot", str(good)]
    )
    assert json.loads(done.stdout)["added_row_count"] == 1
    assert content(table.refresh()) == [(1, 1, 1.0)]
    refused = CliRunner().invoke(app, [*lake, "revert", "shop.lines", str(mistake)])
    assert refused.exit_code == 1, "a row of the commit is back already"
    assert CliRunner().invoke(app, [*lake, "restore-rows", "shop.lines", "--where", "true"]).exit_code == 2
