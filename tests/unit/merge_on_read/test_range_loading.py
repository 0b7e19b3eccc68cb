"""Loading the spans of range delete files; some files have their spans in the manifest entry."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import LongType

from tableformat.deletes.codecs import inline_spans, packed_spans
from tableformat.scan.context import merge_context
from tableformat.testing.table_files import live_delete_files


def test_spans_are_equal_from_entry_file_or_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RD-8, RD-13: entries that carry spans, files that have to be read and such as were read before, in any order."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), key=["id"])
    for id_ in range(6):
        with monkeypatch.context() as patched:
            if id_ % 2:
                patched.setattr(inline_spans, "MAX_SPANS", 0)
                patched.setattr(packed_spans, "MAX_SPANS", 0)
            table.delete_prefix({"id": id_})
    deletes = sorted(live_delete_files(table), key=lambda delete: delete.sequence_number or 0)
    assert [delete.range_spans is None for delete in deletes] == [False, True] * 3
    loader = merge_context(table.view).loader
    for some in (deletes[3:4], deletes, deletes[::-1], deletes[1::2], deletes[::2]):
        found = loader.spans_of_files(some)
        assert [spans.lower.columns[0].to_pylist() for spans in found] == [
            [(delete.sequence_number or 0) - 1] for delete in some
        ]
        assert [spans.sequence_numbers.tolist() for spans in found] == [[delete.sequence_number] for delete in some]


def test_cached_spans_are_converted_after_promotion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-6, DA-8: what is held of a range delete file is in the type that its column had then."""
    monkeypatch.setattr(inline_spans, "MAX_SPANS", 0)
    monkeypatch.setattr(packed_spans, "MAX_SPANS", 0)
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int32()), ("v", pa.string())]), key=["id"])
    table.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    table.delete_prefix({"id": 1})
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "v": "b"}]
    before = merge_context(table.view).loader.range_spans(live_delete_files(table)[0])
    with table.update_schema() as update:
        update.update_column("id", LongType())
    after = merge_context(table.view).loader.range_spans(live_delete_files(table)[0])
    assert [spans.lower.columns[0].type for spans in (before, after)] == [pa.int32(), pa.int64()]
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "v": "b"}]
