"""Tags of branches that are published: what the branch has of its target."""

from __future__ import annotations

from pathlib import Path

from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.testing.table_rows import live_tuples


def published_to_main(main: tf.Table, directory: Path, branch: str) -> tf.Table:
    main.create_branch(branch)
    main.set_properties(**{f"tableformat.publish-target.{branch}": "main"})
    return tf.open_catalog(str(directory / "lake")).load_table("db.t", branch=branch)


def test_files_that_the_branch_has_are_not_carried_again_without_the_tag(tmp_path: Path) -> None:
    """MT-31: somebody dropped the tag, and the two branches part before the files came."""
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


def test_each_branch_that_is_published_gets_its_tag(tmp_path: Path) -> None:
    """MT-31, MT-1: also where one of them has it by now."""
    main = keyed_table(tmp_path)
    main.append(rows("a", [1]))
    published_to_main(main, tmp_path, "ingest")
    main.maintenance.expire_snapshots()
    published_to_main(main, tmp_path, "other")
    main.append(rows("b", [1]))
    main.maintenance.expire_snapshots()
    assert {"carried.ingest", "carried.other"} <= set(main.refresh().metadata.refs)
