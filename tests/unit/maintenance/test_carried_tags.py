"""Tags for branches that are published: the state of the target that a branch contains."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.testing.table_rows import live_tuples


def published_to_main(main: tf.Table, directory: Path, branch: str) -> tf.Table:
    main.create_branch(branch)
    main.set_properties(**{f"tableformat.publish-target.{branch}": "main"})
    return tf.open_catalog(str(directory / "lake")).load_table("db.t", branch=branch)


def test_branch_files_are_not_carried_again_without_the_tag(tmp_path: Path) -> None:
    """MT-31: the tag was dropped by another writer, and the two branches diverge before the files were added."""
    main = keyed_table(tmp_path)
    main.append(rows("a", range(4)))
    ingest = published_to_main(main, tmp_path, "ingest")
    main.append(rows("b", [1]))
    ingest.delete_prefix({"id1": "a", "id2": 3})
    ingest.maintenance.convert_deletes()
    main.refresh().drop_tag("carried.ingest")
    main.append(rows("c", [1]))
    main.maintenance.publish()
    expected = [("a", 0, "x"), ("a", 1, "x"), ("a", 2, "x"), ("b", 1, "x"), ("c", 1, "x")]
    assert live_tuples(main.refresh()) == live_tuples(ingest.refresh()) == expected


def test_each_published_branch_has_its_own_tag(tmp_path: Path) -> None:
    """MT-31, MT-1: also if another branch already has its tag."""
    main = keyed_table(tmp_path)
    main.append(rows("a", [1]))
    published_to_main(main, tmp_path, "ingest")
    main.maintenance.expire_snapshots()
    published_to_main(main, tmp_path, "other")
    main.append(rows("b", [1]))
    main.maintenance.expire_snapshots()
    assert {"carried.ingest", "carried.other"} <= set(main.refresh().metadata.refs)


def test_conversion_without_carried_files_creates_the_tag(tmp_path: Path) -> None:
    """MT-31: from then on, expiry by another program keeps the snapshot that both branches share."""
    main = keyed_table(tmp_path)
    main.append(rows("a", [1, 2]))
    base = main.snapshot_id
    ingest = published_to_main(main, tmp_path, "ingest")
    ingest.delete_prefix({"id1": "a", "id2": 2})
    ingest.maintenance.convert_deletes()
    main.refresh().append(rows("b", [1]))
    main.iceberg.maintenance.expire_snapshots().older_than(datetime(2100, 1, 1)).commit()
    assert base in {snapshot.snapshot_id for snapshot in main.refresh().metadata.snapshots}
    main.maintenance.publish()
    assert live_tuples(main.refresh()) == [("a", 1, "x"), ("b", 1, "x")]
