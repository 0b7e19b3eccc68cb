"""A partition field cannot have the name of a column: the error of this library suggests another name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.errors import InvalidArgumentError

CASES = [
    (pa.schema([("id", pa.int64()), ("id_bucket", pa.int64())]), "bucket(4, id)", "bucket[4]"),
    (pa.schema([("id", pa.int64()), ("id_trunc", pa.int64())]), "truncate(10, id)", "truncate[10]"),
    (pa.schema([("id", pa.timestamp("us")), ("id_day", pa.int64())]), "day(id)", "day"),
]


@pytest.mark.parametrize(("schema", "text", "transform"), CASES)
def test_partition_field_named_like_a_column_is_rejected(
    tmp_path: Path, schema: pa.Schema, text: str, transform: str
) -> None:
    catalog = new_lake(tmp_path / "lake")
    for make in (catalog.create_table, catalog.stage_table):
        with pytest.raises(InvalidArgumentError, match="name of a column"):
            make("db.t", schema, partition_by=[text])
    table = catalog.create_table("db.t", schema)
    with pytest.raises(InvalidArgumentError, match="_part"), table.update_spec() as update:
        update.add_field("id", transform, schema.names[1])
    with table.update_spec() as update:
        update.add_field("id", transform, "id_part")
    assert [field.name for field in table.refresh().metadata.spec().fields] == ["id_part"]
