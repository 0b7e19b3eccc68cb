"""The arguments `strategy` and `sort_order` of `rewrite_data_files`; needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import IdentityTransform

from spark_ext.service.procedures.rewrites import rewrite_data_files
from tableformat import Table
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])


@pytest.fixture
def keyless(tmp_path: Path) -> Iterator[Table]:
    """Two files of a table without a key."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        for number in (2, 1):
            table.append(pa.table({"a": [number], "b": [0]}, schema=SCHEMA))
        yield table


@pytest.mark.parametrize(
    "asked",
    [
        {"sort_order": "a"},
        {"sort_order": "b, `a` ASC NULLS LAST"},
        {"strategy": "sort", "sort_order": "ZORDER(b, `a`)"},
    ],
)
def test_keyless_rows_are_sorted_as_requested(keyless: Table, asked: dict[str, str]) -> None:
    """PR-9."""
    [row] = rewrite_data_files(keyless, options={"rewrite-all": "true"}, **asked)
    assert row["added_data_files_count"] == 1
    assert keyless.scan().to_arrow()["a"].to_pylist() == [1, 2]


def test_sort_strategy_uses_the_table_order(keyless: Table) -> None:
    """PR-9: the strategy sort without an order; the files state that they are in the table's order."""
    before = keyless.snapshot_id
    with pytest.raises(InvalidArgumentError, match=r"db\.t has no sort order.* WRITE ORDERED BY"):
        rewrite_data_files(keyless, strategy="SORT")
    assert keyless.refresh().snapshot_id == before
    with keyless.iceberg.update_sort_order() as update:
        update.desc("a", IdentityTransform(), NullOrder.NULLS_FIRST)
    rewrite_data_files(keyless, strategy="SORT", options={"rewrite-all": "true"})
    assert keyless.scan().to_arrow()["a"].to_pylist() == [2, 1]
    assert keyless.inspect.data_files()["sort_order_id"].to_pylist() == [1]
    rewrite_data_files(keyless, sort_order="a", options={"rewrite-all": "true"})
    assert keyless.inspect.data_files()["sort_order_id"].to_pylist() == [None]


def test_invalid_sort_order_is_rejected(keyless: Table) -> None:
    """PR-9."""
    for order, message in (
        ("bucket(4, a)", "by columns"),
        ("c", "unknown column 'c'"),
        ("zorder(a)", "two or more columns"),
        ("a, a DESC", "each column only once"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            rewrite_data_files(keyless, sort_order=order)


def test_binpack_keeps_the_row_order_of_keyless_table(keyless: Table) -> None:
    """PR-9: `binpack` is what the error names."""
    [row] = rewrite_data_files(keyless, strategy="binpack", options={"rewrite-all": "true"})
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (2, 1)
    assert sorted(keyless.scan().to_arrow()["a"].to_pylist()) == [1, 2]


def test_keyed_table_rejects_another_sort_order(tmp_path: Path) -> None:
    """PR-9, FM-6."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["a", "b"])
        for order in ("a DESC, b", "zorder(a, b)", "b"):
            with pytest.raises(InvalidArgumentError, match=r"sorted by the key, 'a, b',.* Omit the order"):
                rewrite_data_files(table, sort_order=order)
        assert rewrite_data_files(table, strategy="sort", sort_order="`a` ASC, b nulls first")
