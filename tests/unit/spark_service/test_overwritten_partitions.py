"""Dynamic partition overwrite with files of an older spec: their rows are looked up, and no neighbouring row is
lost."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from v3_tables import ids, new_catalog, new_table, rows

from spark_ext.service.writes.overwritten_partitions import OverwrittenPartitions, stage_overwritten_partitions
from tableformat.metadata.partition_identity import partition_identity
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft


@pytest.mark.parametrize("version", [2, 3])
def test_positions_after_deleted_row_group_count_from_file_start(tmp_path: Path, version: int) -> None:
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
    spec = draft.context.spec
    stage_overwritten_partitions(draft, OverwrittenPartitions(spec, {(spec.spec_id, (14,)): None}))
    draft.commit(CommitOptions(), started=0.0)
    assert ids(table.refresh()) == [("a", number) for number in (1, 2, 13, 15, 16)]


@pytest.mark.parametrize(("number", "left"), [(math.nan, [1, 2, 4, 5]), (0.0, [2, 3, 5, 6]), (-0.0, [1, 3, 4, 6])])
@pytest.mark.parametrize("is_older_spec", [False, True])
def test_overwrite_of_float_partitions(tmp_path: Path, number: float, left: list[int], is_older_spec: bool) -> None:
    """DA-3: no number equals NaN in Python, so the old rows used to stay in addition to the new ones; and -0.0 also
    removed 0.0."""
    schema = pa.schema([("x", pa.float64()), ("n", pa.int64())])
    partition_by = [] if is_older_spec else ["x"]
    table = new_catalog(tmp_path).create_table("db.floats", schema, partition_by=partition_by)
    table.append(pa.table({"x": [0.0, -0.0, math.nan] * 2, "n": range(1, 7)}, schema=schema))
    if is_older_spec:
        with table.update_spec() as update:
            update.add_identity("x")
        table.refresh()
    draft = Draft(table.iceberg, "main")
    draft.begin_verb()
    spec = draft.context.spec
    overwritten = {partition_identity(spec.spec_id, (number,)): None}
    stage_overwritten_partitions(draft, OverwrittenPartitions(spec, overwritten))
    draft.commit(CommitOptions(), started=0.0)
    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == left
