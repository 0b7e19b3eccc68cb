"""A lazy Polars frame has the rows that the same query has over a DataFrame."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import tableformat as tf

NAN = float("nan")
NUMBER, TEXT, STRUCT = pl.col("number"), pl.col("text"), pl.col("struct")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tf.Table:
    """Two files of rows with NaN, null and a deleted row."""
    catalog = tf.open_catalog(tmp_path_factory.mktemp("lake"))
    for start in (1, 6):
        rows = pa.table(
            {
                "id": range(start, start + 5),
                "number": [2.0, NAN, 0.5, None, 7.0],
                "text": ["a", "b", None, "c", "a"],
                "struct": [{"x": 1, "y": 2}, {"x": None, "y": 2}, None, {"x": 2, "y": 2}, {"x": 1, "y": 3}],
            }
        )
        catalog.write("db.rows", rows, key=["id"])
    loaded = catalog.load_table("db.rows")
    loaded.delete_prefix({"id": 7})
    return loaded.refresh()


@pytest.mark.parametrize(
    "condition",
    [
        NUMBER > 1,
        ~(NUMBER < 1),
        NUMBER != NAN,
        NUMBER <= NAN,
        NUMBER.is_nan(),
        NUMBER.is_not_nan(),
        NUMBER.is_between(0, 2),
        NUMBER + 1 > 2,
        (NUMBER > 1) ^ (pl.col("id") > 2),
        ~((NUMBER > 1) | TEXT.is_null()),
        ~TEXT.is_in(["a"]),
        ~TEXT.is_in([None], nulls_equal=True),
        TEXT.is_in([None, "a"], nulls_equal=True),
        TEXT.eq_missing("a"),
        TEXT.ne_missing("a"),
        TEXT != "a",
        TEXT.str.starts_with("a"),
        STRUCT.struct.field("x") == 1,
        pl.col("id") > 3.5,
        pl.lit(True),
        pl.col("id") < 0,
    ],
    ids=str,
)
def test_lazy_frame_filters_agree_with_dataframe(table: tf.Table, condition: pl.Expr) -> None:
    lazy, frame = table.to_polars(lazy=True), table.to_polars().sort("id")
    assert lazy.filter(condition).sort("id").collect().equals(frame.filter(condition))
    assert lazy.filter(condition).select("id").collect(engine="streaming").height == frame.filter(condition).height
    assert lazy.filter(condition).select(pl.len()).collect().item() == frame.filter(condition).height
    assert lazy.filter(condition).head(2).collect().height == frame.filter(condition).head(2).height


def test_filters_and_columns_are_pushed_into_the_scan(table: tf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[str] = []
    to_batches = tf.Scan.to_batches

    def noted(scan: tf.Scan) -> pa.RecordBatchReader:
        scanned.append(repr(scan))
        return to_batches(scan)

    monkeypatch.setattr(tf.Scan, "to_batches", noted)
    found = table.to_polars(lazy=True).filter(pl.col("id") == 9).select("text").collect()
    assert found.rows() == [("c",)]
    (scan,) = scanned
    assert "where=id = 9" in scan
    assert "number" not in scan


def test_lazy_frame_without_filter(table: tf.Table) -> None:
    lazy = table.to_polars(lazy=True)
    assert lazy.select(pl.len()).collect().item() == 9
    assert lazy.join(lazy, on="id").select(pl.len()).collect().item() == 9
    assert lazy.collect_schema() == table.to_polars().schema


def test_struct_keeps_its_selected_fields(table: tf.Table) -> None:
    lazy = table.scan(columns=["id", "struct.x"]).to_polars(lazy=True)
    assert lazy.filter(pl.col("id") == 1).select("struct").collect()["struct"].to_list() == [{"x": 1}]


def test_limit_applies_before_the_filter(table: tf.Table) -> None:
    limited = table.scan(limit=2)
    condition = ~pl.col("id").is_in(limited.to_polars()["id"].to_list())
    assert limited.to_polars(lazy=True).filter(condition).collect().is_empty()
