"""Retired ranges in listings, explanations and rejections, and their properties."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.update import RemoveSnapshotRefUpdate

import tableformat as tf
from tableformat.errors import UncoveredRowsError
from tableformat.operations.history.references import commit_updates
from tableformat.properties import RETIRED_PREFIX

SCHEMA = pa.schema([("year", pa.int32()), ("id", pa.int64())])


@pytest.fixture
def sales(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    table = catalog.create_table("db.sales", SCHEMA, key=["year", "id"], range_partitions=years)
    table.append(rows((2020, 1), (2020, 2), (2021, 3)))
    return table


def rows(*given: tuple[int, int]) -> pa.Table:
    return pa.table({"year": [year for year, _ in given], "id": [key for _, key in given]}, SCHEMA)


def states(listed: pa.Table) -> list[tuple[str, str, int]]:
    return [(row["partition"], row["state"], row["record_count"]) for row in listed.to_pylist()]


def retired_properties(table: tf.Table) -> list[str]:
    return [name for name in table.refresh().properties if name.startswith(RETIRED_PREFIX)]


def test_list_shows_a_retired_range_until_restored(sales: tf.Table) -> None:
    """RP-30: with its tag, the time and its rows; in an earlier snapshot it is live."""
    loaded = sales.snapshot_id
    started = datetime.now(UTC) - timedelta(seconds=1)
    tag = sales.range_partitions.retire(2020, 2021).tag
    assert tag is not None
    listed = sales.range_partitions.list()
    assert states(listed)[:2] == [("[2020, 2021)", "retired", 2), ("[2021, 2022)", "live", 1)]
    assert listed["tag"].to_pylist() == [tag, None, None, None]
    assert started < listed["retired_at"][0].as_py() < datetime.now(UTC) + timedelta(seconds=1)
    assert states(sales.inspect.range_partitions()) == states(listed)
    sales.append(rows((2022, 9)))
    assert states(sales.range_partitions.list())[0] == ("[2020, 2021)", "retired", 2)
    assert not sales.scan(snapshot_id=loaded).explain().retired
    sales.range_partitions.restore(tag)
    assert states(sales.range_partitions.list())[0] == ("[2020, 2021)", "live", 2)


def test_branch_with_the_rows_lists_no_retired_range(sales: tf.Table) -> None:
    """RP-30: the retirement is not in its history."""
    sales.create_branch("audit")
    sales.range_partitions.retire(2020, 2021)
    branch = sales.refresh().catalog.load_table("db.sales", branch="audit")  # type: ignore[union-attr]
    assert "retired" not in branch.range_partitions.list()["state"].to_pylist()
    assert not branch.scan().explain().retired


def test_explain_names_retired_ranges_that_match_the_filter(sales: tf.Table) -> None:
    """RP-30: others are not mentioned; the text has the tag with the rows."""
    tag = sales.range_partitions.retire(2020, 2021).tag
    for where, expected in (
        (None, [tag]),
        ("year = 2020", [tag]),
        ("year < 2021 and id = 2", [tag]),
        ("year >= 2021", []),
        ("year = 2019 or year = 2023", []),
        ("id = 2", [tag]),
    ):
        found = sales.scan(where=where).explain()
        assert [each.tag for each in found.retired] == expected, where
        assert (str(tag) in str(found)) == bool(expected)
    assert sales.scan(where="year = 2020").explain(analyze=True).to_dict()["retired"][0]["ranges"] == "[2020, 2021)"
    assert str(tag) in sales.scan().explain()._repr_html_()


def test_rejection_error_names_the_tag_of_a_retired_range(sales: tf.Table) -> None:
    """RP-30: only for its rows; new files of another process are compared by their bounds."""
    tag = sales.range_partitions.retire(2020, 2021).tag
    for write in (sales.append, sales.upsert, sales.new_write(kind="append").write):
        with pytest.raises(UncoveredRowsError) as error:
            write(rows((2020, 7), (1999, 8)))
        reasons = error.value.refused["reason"].to_pylist()
        assert [str(tag) in reason for reason in reasons] == [True, False]


def test_dropping_the_tag_forgets_the_retired_range(sales: tf.Table) -> None:
    """RP-31: in the commit that drops it."""
    tag = sales.range_partitions.retire(2020, 2021).tag
    assert tag is not None
    assert retired_properties(sales) == [RETIRED_PREFIX + tag]
    sales.drop_tag(tag)
    assert retired_properties(sales) == []
    assert states(sales.range_partitions.list())[0] == ("[2021, 2022)", "live", 1)


def test_expiry_forgets_retired_ranges_without_tag(sales: tf.Table) -> None:
    """RP-31: other programs drop tags without the property."""
    by_age, by_others = (sales.range_partitions.retire(year, year + 1).tag for year in (2020, 2021))
    assert by_age is not None
    assert by_others is not None
    sales.append(rows((2022, 9)))
    removal = RemoveSnapshotRefUpdate.model_validate({"ref-name": by_others})
    commit_updates(sales.iceberg, (), (removal,))
    assert states(sales.range_partitions.list())[:2] == [("[2020, 2021)", "retired", 2), ("[2022, 2023)", "live", 1)]
    sales.maintenance.expire_snapshots(older_than=timedelta(days=1))
    assert retired_properties(sales) == [RETIRED_PREFIX + by_age]
    sales.set_properties({"history.expire.max-ref-age-ms": "1"})
    result = sales.maintenance.expire_snapshots(older_than=timedelta(0), retain_last=1)
    assert by_age in result.removed_refs
    assert retired_properties(sales) == []


def test_retired_range_properties_of_other_versions(sales: tf.Table) -> None:
    """RP-30: the time may be unknown, and a property that describes no range is left out."""
    tag = sales.range_partitions.retire(2020, 2021).tag
    assert tag is not None
    record = json.loads(sales.refresh().properties[RETIRED_PREFIX + tag])
    del record["retired-ms"]
    sales.set_properties({RETIRED_PREFIX + tag: json.dumps(record), RETIRED_PREFIX + "other": "[1, 2"})
    listed = sales.range_partitions.list()
    assert states(listed)[0] == ("[2020, 2021)", "retired", 2)
    assert listed["retired_at"][0].as_py() is None
    assert [each.tag for each in sales.scan().explain().retired] == [tag]
    sales.range_partitions.restore(tag)
    assert sales.scan().count() == 3
