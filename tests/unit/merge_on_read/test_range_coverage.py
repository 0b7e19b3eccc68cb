"""The data files to which a plan assigns the spans of range delete files, if each range delete belongs to a
partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField
from resolve_tables import context_of, data_file, delete_file, with_ids, write

from tableformat.deletes.codecs.range_file import spans_to_parquet_table
from tableformat.deletes.spans.spans import span_of_bounds
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.delete_index import ColumnTypes
from tableformat.merge_on_read.range_coverage import RangeCoverage, range_coverage
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET

SCHEMA = Schema(NestedField(1, "place", LongType()), NestedField(2, "id", LongType()), schema_id=0)
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "place"), spec_id=1)


def coverage(tmp_path: Path, *spans: tuple[int, int | None, int | None]) -> RangeCoverage:
    """The range coverage of data files with ids 0 to 9 in partitions 1, 2 and 3. Each span is in its own delete
    file."""
    ids = write(tmp_path / "ids.parquet", with_ids(pa.table({"id": range(10)}), [2]))
    files = [
        data_file(
            ids,
            file_path=f"{place}",
            spec_id=1,
            partition=(place,),
            lower_bounds={2: to_bytes(LongType(), 0)},
            upper_bounds={2: to_bytes(LongType(), 9)},
            null_value_counts={2: 0},
        )
        for place in (1, 2, 3)
    ]
    key = KeyColumns.of(SCHEMA, (2,))
    deletes = []
    for number, (place, lower, upper) in enumerate(spans):
        rows = spans_to_parquet_table(span_of_bounds(key, lower and (lower,), upper and (upper,)))
        path = write(tmp_path / f"{number}.parquet", rows)
        deletes.append(
            delete_file(path, equality_ids=(2,), file_format=RANGE_DELETES_PARQUET, spec_id=1, partition=(place,))
        )
    return range_coverage(
        deletes,
        columns_of_files(files),
        specs={1: SPEC},
        column_types=ColumnTypes({2: LongType()}),
        loader=context_of(SCHEMA, spec=SPEC).loader,
        span_budget=100,
    )


def test_partition_range_deletes_do_not_affect_other_partitions(tmp_path: Path) -> None:
    """RD-3: range deletes that apply to no file do not hide the ones after them."""
    found = coverage(tmp_path, (4, None, None), (2, 3, 5), (3, None, None))
    assert found.covered == {2}
    assert list(found.spans) == [1]
