"""The layers of a snapshot: the positions of files, the files that deletes reach, and drawings that stay small and
legible."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.snapshot_layers.axis import Axis
from tableformat.snapshot_layers.bands import BINS, MAX_BANDS, arrange, depth
from tableformat.snapshot_layers.collect import Collected, LayerSpan
from tableformat.snapshot_layers.layers import Layers
from tableformat.snapshot_layers.picture import Picture
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_rows

COLUMNS_TYPE = LongType()
COLUMNS = pa.schema([("k", pa.int64()), ("n", pa.int64())])


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(keys, pa.int64())})


def layered(catalog: tf.Catalog) -> tf.Table:
    """Ids 0 to 100 in two files, a delete of 20 to 40 that applies to the first file, and a newer file in between."""
    table = catalog.create_table("db.t", COLUMNS, key=["k"])
    table.append(rows(0, 50))
    table.append(rows(60, 100))
    table.delete_range(on=["k"], lower=[20], upper=[40])
    table.append(rows(25, 30))
    return table


def test_files_are_drawn_at_their_bounds(catalog: tf.Catalog) -> None:
    spans = {(span.kind, span.sequence_number): span for span in layered(catalog).layers().picture.collected.spans}
    assert (spans["data", 1].lower, spans["data", 1].upper) == (0.0, 0.5)
    assert (spans["data", 2].lower, spans["data", 2].upper) == (0.6, 1.0)
    assert spans["range", 3].lower == 0.2
    assert 0.39 <= spans["range", 3].upper <= 0.4
    assert {number: spans["data", number].is_reached for number in (1, 2, 4)} == {1: True, 2: False, 4: False}
    assert all(span.is_bounded for span in spans.values())


def test_files_without_bounds_are_drawn_to_the_edge(catalog: tf.Catalog) -> None:
    table = layered(catalog)
    table.delete_rows(pa.table({"n": pa.array([7], pa.int64())}))
    found = table.layers()
    (equality,) = (span for span in found.picture.collected.spans if span.kind == "equality")
    assert (equality.lower, equality.upper, equality.is_bounded) == (0.0, 1.0, False)
    assert "reach to the edge: 1." in found.text()
    optional = catalog.create_table("db.o", COLUMNS)
    optional.append(pa.table({"k": pa.array([None, 5, 9], pa.int64()), "n": pa.array([1, 1, 1], pa.int64())}))
    (span,) = optional.layers().picture.collected.spans
    assert (span.lower, span.is_bounded) == (0.0, False)


def test_layers_open_no_files(catalog: tf.Catalog) -> None:
    table = layered(catalog)
    before = str(table.layers())
    for file in live_data_files(table):
        Path(file.file_path.removeprefix("file://")).unlink()
    assert str(catalog.load_table("db.t").layers()) == before


def test_range_partitions_are_drawn_as_a_ruler(catalog: tf.Catalog) -> None:
    years = tf.RangePartitions(on=["n"], bounds=[(0, 40), (80, 100)], step=20)
    table = catalog.create_table("db.p", COLUMNS, key=["n", "k"], range_partitions=years)
    assert "It has no files." in str(table.layers())
    table.append(rows(1, 30, 90))
    found = table.layers()
    ruler = found.picture.collected.ruler
    assert ruler is not None
    assert (ruler.bounds, ruler.partition_count) == (((0.0, 0.4), (0.8, 1.0)), 3)
    assert ruler.borders == (0.0, 0.2, 0.4, 0.8, 1.0)
    (line,) = (line for line in found.text(width=53).splitlines() if line.startswith("partitions"))
    assert line == "partitions   |=======|=======|///////////////|======|"
    drawn = found.svg()
    assert drawn.count("does not exist") == 1
    assert table.layers("k").picture.collected.ruler is None


def test_layers_of_other_columns_and_snapshots(catalog: tf.Catalog) -> None:
    table = layered(catalog)
    assert table.layers(snapshot_id=table.history()["snapshot_id"][0].as_py()).to_dict()["files"][0]["kind"] == "data"
    even = table.layers(to_scale=False)
    assert "Values stand at equal distances." in even.text()
    with pytest.raises(UnknownColumnError):
        table.layers("nn")
    nested = catalog.create_table("db.n", pa.schema([("l", pa.list_(pa.int64())), ("v", pa.string())]))
    assert nested.layers().picture.collected.axis.column == "v"
    with pytest.raises(InvalidArgumentError, match="cannot be used to draw layers"):
        nested.layers("l")


def test_hostile_names_and_values_are_escaped(catalog: tf.Catalog) -> None:
    name = "db.<script>alert(1)</script>&\"'"
    table = catalog.create_table(name, pa.schema([("<k>&", pa.string())]), key=["<k>&"])
    table.append(pa.table({"<k>&": ["</svg><script>", "\x1b[31m\x00\x07", "]]>&amp;"]}))
    found = table.layers()
    assert live_rows(table)
    for drawn in (found.svg(), found._repr_html_()):
        root = ElementTree.fromstring(drawn)
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert root.tag.endswith("svg")
        assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert not re.search("[\x00-\x09\x0b-\x1f]", found.text())


def spans(count: int) -> list[LayerSpan]:
    return [
        LayerSpan(
            kind=("data", "data", "range", "equality")[index % 4],
            lower=index * 7919 % count / count,
            upper=min(1.0, index * 7919 % count / count + 0.02),
            is_bounded=True,
            sequence_number=index // 20 + 1,
            record_count=1,
            is_reached=index % 8 == 0,
            file_path=f"file-{index}",
        )
        for index in range(count)
    ]


def test_many_files_are_binned_with_a_note() -> None:
    many = spans(10_000)
    axis = Axis("k", COLUMNS_TYPE, to_scale=True, values=(0, 10))
    bands = arrange(many)
    found = Layers(Picture("db.many", 1, Collected(axis, tuple(many), None), bands, depth(many)))
    assert found.is_binned
    assert len(bands) <= MAX_BANDS
    assert sum(band.file_count for band in bands) == len(many)
    assert bands[0].last_number == 500
    assert len(found.svg()) < 1_500_000
    assert f"10,000 files are drawn in {BINS} columns" in found.text()
    assert "Some rows have several sequence numbers." in found.text()
    assert max(len(line) for line in found.text(width=80).splitlines()) <= 80
    few = arrange(spans(60))
    assert all(mark.span is not None for band in few for mark in band.marks)
