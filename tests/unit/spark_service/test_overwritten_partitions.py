"""Dynamic overwrite of partitions in files of an older spec: their rows are looked for, and lose no neighbour."""

from __future__ import annotations

from pathlib import Path

import pytest
from v3_tables import ids, new_catalog, new_table, rows

from spark_ext.service.writes.overwritten_partitions import stage_overwritten_partitions
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.options import CommitOptions


@pytest.mark.parametrize("version", [2, 3])
def test_rows_behind_a_deleted_row_group_are_counted_from_the_start_of_the_file(tmp_path: Path, version: int) -> None:
    """DA-1, DA-7: the first row group has no live row and is not read."""
    table = new_table(new_catalog(tmp_path), version, **{"write.parquet.row-group-limit": "2"})
    table.append(rows("a", 1, 2))
    table.append(rows("a", 11, 12, 13, 14, 15, 16))
    table.delete("id IN (11, 12)", mode="scan")
    with table.update_spec() as update:
        update.add_identity("id")
    table.refresh()
    draft = Draft(table.iceberg, "main")
    draft.begin_verb()
    stage_overwritten_partitions(draft, draft.context.spec, {(14,)})
    draft.commit(CommitOptions(), started=0.0)
    assert ids(table.refresh()) == [("a", number) for number in (1, 2, 13, 15, 16)]
