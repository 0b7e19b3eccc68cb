"""The arguments `strategy` and `sort_order` of `rewrite_data_files`; no Spark needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_ext.service.procedures.rewrites import rewrite_data_files
from tableformat import Table, open_catalog
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])


@pytest.fixture
def keyless(tmp_path: Path) -> Iterator[Table]:
    """Two files of a table without a key."""
    with open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        for number in (2, 1):
            table.append(pa.table({"a": [number], "b": [0]}, schema=SCHEMA))
        yield table


@pytest.mark.parametrize(
    "asked",
    [{"strategy": "SORT"}, {"sort_order": "a DESC, b"}, {"strategy": "sort", "sort_order": "zorder(a, b)"}],
)
def test_without_a_key_a_sorted_rewrite_says_what_sorts(keyless: Table, asked: dict[str, str]) -> None:
    """PR-9."""
    before = keyless.snapshot_id
    with pytest.raises(InvalidArgumentError, match=r"db\.t has no key.* SET IDENTIFIER FIELDS .* WRITE ORDERED BY"):
        rewrite_data_files(keyless, **asked)
    assert keyless.refresh().snapshot_id == before


def test_without_a_key_rows_stay_as_they_stand(keyless: Table) -> None:
    """PR-9: `binpack` is what the error names."""
    [row] = rewrite_data_files(keyless, strategy="binpack", options={"rewrite-all": "true"})
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (2, 1)
    assert sorted(keyless.scan().to_arrow()["a"].to_pylist()) == [1, 2]


def test_with_a_key_another_order_is_refused(tmp_path: Path) -> None:
    """PR-9, FM-6."""
    with open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA, key=["a", "b"])
        for order in ("a DESC, b", "zorder(a, b)", "b"):
            with pytest.raises(InvalidArgumentError, match=r"in the order of its key, 'a, b',.* Leave sort_order out"):
                rewrite_data_files(table, sort_order=order)
        assert rewrite_data_files(table, strategy="sort", sort_order="`a` ASC, b nulls first")
