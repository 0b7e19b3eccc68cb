"""Field ids of Parquet columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.name_mapping import parse_mapping_from_json
from resolve_tables import data_file, with_ids, write

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.parquet.parquet_columns import field_id_of, leaf_columns, with_field_ids
from tableformat.parquet.parquet_file import open_parquet

NESTED = pa.schema(
    [
        pa.field("a", pa.int64()),
        pa.field(
            "s",
            pa.struct(
                [pa.field("x.y", pa.string()), pa.field("l", pa.list_(pa.int32())), pa.field("z", pa.binary(16))]
            ),
        ),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("last", pa.int32()),
    ]
)
MAPPING = parse_mapping_from_json(
    '[{"field-id": 1, "names": ["a", "old_a"]}, {"field-id": 2, "names": ["s"], "fields": ['
    '{"field-id": 3, "names": ["x.y"]},'
    '{"field-id": 4, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},'
    '{"field-id": 6, "names": ["z"]}]}, {"field-id": 7, "names": ["m"], "fields": [{"field-id": 8, "names": ["key"]},'
    '{"field-id": 9, "names": ["value"]}]}, {"field-id": 10, "names": ["last"]}]'
)


def test_name_mapping_assigns_ids_at_every_level() -> None:
    """DA-6: leaves inside lists and maps are counted and left out."""
    leaves = leaf_columns(with_field_ids(NESTED, MAPPING, "x"), 7, "x")
    described = {field_id: (leaf.index, leaf.path) for field_id, leaf in leaves.items()}
    assert described == {1: (0, ("a",)), 3: (1, ("s", "x.y")), 6: (3, ("s", "z")), 10: (6, ("last",))}


def test_file_field_ids_take_precedence_over_name_mapping() -> None:
    table = with_ids(pa.table({"a": [1], "b": [2]}), [7, None])
    schema = with_field_ids(table.schema, MAPPING, "x")
    assert [field_id_of(field) for field in schema] == [7, None]


def test_file_without_ids_requires_a_name_mapping() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"x\.parquet.*schema\.name-mapping\.default"):
        with_field_ids(NESTED, None, "x.parquet")


def test_duplicate_field_id_is_rejected() -> None:
    table = with_ids(pa.table({"a": [1], "b": [2]}), [7, 7])
    with pytest.raises(CorruptFileError, match="field id 7"):
        leaf_columns(table.schema, 2, "x.parquet")


def test_nested_columns_are_read_by_id_with_null_parents(tmp_path: Path) -> None:
    rows = [
        {"a": 1, "s": {"x.y": "one", "l": [1, 2], "z": bytes(16)}, "m": [("k", 1)], "last": 5},
        {"a": 2, "s": None, "m": None, "last": 6},
        {"a": 3, "s": {"x.y": None, "l": None, "z": None}, "m": [], "last": None},
    ]
    path = write(tmp_path / "x.parquet", pa.Table.from_pylist(rows, schema=NESTED), row_group_size=2)
    with open_parquet(PyArrowFileIO(), data_file(path), name_mapping=MAPPING) as file:
        text, missing, last = file.read([3, 99, 10], [0, 1])
        assert file.row_group_starts.tolist() == [0, 2, 3]
    assert text.to_pylist() == ["one", None, None]
    assert missing is None
    assert last.to_pylist() == [5, 6, None]


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no parquet file at all, but long enough to look for a footer in it"]
)
def test_non_parquet_file_error_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    described = data_file(write(tmp_path / "good.parquet", pa.table({"a": [1]})), file_path=str(path))
    with pytest.raises(CorruptFileError, match=r"broken\.parquet"), open_parquet(PyArrowFileIO(), described):
        pass


@pytest.mark.parametrize("file_format", ["ORC", "AVRO"])
def test_unsupported_format_error_names_the_file(tmp_path: Path, file_format: str) -> None:
    described = data_file(write(tmp_path / "x.parquet", pa.table({"a": [1]})), file_format=file_format)
    with (
        pytest.raises(UnsupportedFeatureError, match=rf"x\.parquet is an {file_format} file"),
        open_parquet(PyArrowFileIO(), described),
    ):
        pass
