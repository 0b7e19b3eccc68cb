"""`tableformat.retain`: rows older than the retention period of the table are deleted (MT-107 to MT-110)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import InvalidArgumentError, TableFormatError, UnknownColumnError

RETAIN = "tableformat.retain"


NOW = datetime(2026, 6, 30, 15, 30, tzinfo=UTC)


SCHEMA = pa.schema(
    [("region", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("customer", pa.string()), ("day", pa.date32())]
)


def rows(*given: tuple[str, int | None]) -> pa.Table:
    """A row for each region and age in days at NOW."""
    made = [
        {
            "region": region,
            "ts": None if age is None else NOW - timedelta(days=age),
            "customer": f"{region}{age}",
            "day": None if age is None else (NOW - timedelta(days=age)).date(),
        }
        for region, age in given
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def make(tmp_path: Path, retain: str, **more: Any) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    if not catalog.list_namespaces():
        catalog.create_namespace("db")
    return catalog.create_table("db.events", SCHEMA, properties={RETAIN: retain, **more.pop("properties", {})}, **more)


def customers(table: tf.Table) -> list[str]:
    return sorted(table.refresh().scan(columns=["customer"]).to_arrow()["customer"].to_pylist())


AGES = rows(("EU", 0), ("EU", 10), ("EU", 40), ("US", 10), ("US", 29), ("US", 31), ("US", None))


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("key", [["ts", "customer"], ["region", "ts", "customer"], ["customer"], []])
@pytest.mark.parametrize("blind", ["range", "equality", "off"])
def test_old_rows_are_deleted_and_nulls_are_kept(tmp_path: Path, version: str, key: list[str], blind: str) -> None:
    """MT-107: regardless of the key; if no range delete is allowed, the job scans for the rows (SP-22)."""
    properties = {"format-version": version, "write.delete.blind": blind}
    table = make(tmp_path, "ts: 30 days; ts: 7 days where region = 'EU'", key=key, properties=properties)
    given = AGES.filter(pa.compute.is_valid(AGES["ts"])) if "ts" in key else AGES
    table.append(given)
    tried = table.maintenance.apply_retention(dry_run=True, now=NOW)
    assert [(each.rule, each.cutoff, each.snapshot_id) for each in tried.rules] == [
        ("ts: 30 days", "2026-05-31T00:00:00.000000", None),
        ("ts: 7 days where region = 'EU'", "2026-06-23T00:00:00.000000", None),
    ]
    assert [each.row_count_max for each in tried.rules] == [len(given)] * 2
    assert len(customers(table)) == len(given)
    result = table.maintenance.apply_retention(now=NOW)
    assert all(each.snapshot_id for each in result.rules)
    assert result.added_delete_files_count > 0
    assert customers(table) == ["EU0", "US10", "US29", *([] if "ts" in key else ["USNone"])]


def test_files_of_only_old_rows_are_removed_without_delete_file(tmp_path: Path) -> None:
    table = make(tmp_path, "ts: 30 days")
    table.append(rows(("EU", 40), ("US", 50)))
    table.append(rows(("EU", 1)))
    result = table.maintenance.apply_retention(now=NOW)
    assert (result.data_files_count, result.added_delete_files_count) == (1, 0)
    assert customers(table) == ["EU1"]


@pytest.mark.parametrize("converts", [False, True])
def test_run_without_due_rows_creates_no_snapshot(tmp_path: Path, converts: bool) -> None:
    """MT-109: also if a file still contains the deleted rows; late rows are due again, and so is the next day."""
    table = make(tmp_path, "ts: 30 days")
    table.append(rows(("EU", 0), ("EU", 40)))
    assert table.maintenance.apply_retention(now=NOW).rules[0].snapshot_id
    if converts:
        table.refresh().maintenance.convert_deletes()
    head = table.refresh().snapshot_id
    again = table.refresh().maintenance.apply_retention(now=NOW + timedelta(hours=3))
    assert (again.data_files_count, again.rules[0].snapshot_id) == (0, None)
    assert table.refresh().snapshot_id == head

    table.append(rows(("US", 50)))
    assert table.maintenance.apply_retention(now=NOW).rules[0].row_count_max == 1
    assert customers(table) == ["EU0"]
    assert table.maintenance.apply_retention(dry_run=True, now=NOW + timedelta(days=1)).data_files_count == 1


@pytest.mark.parametrize(
    ("retain", "cutoff"),
    [
        ("day: 30 days", "2026-05-31"),
        ("DAY_IS: 1 day", None),
        ("day: 2 months", "2026-04-30"),
        ("day: 1 week;", "2026-06-23"),
        ('"day" : 1 year', "2025-06-30"),
        ("ts: 36 hours", "2026-06-29T03:00:00.000000"),
        ("ts: 1 day where region IN ('EU', 'a;b') AND customer IS NULL", "2026-06-29T00:00:00.000000"),
    ],
)
def test_retention_rules_are_parsed(tmp_path: Path, retain: str, cutoff: str | None) -> None:
    """MT-107: names, ages and conditions, and the cutoff that follows; a semicolon in quotes separates nothing."""
    if cutoff is None:
        with pytest.raises(UnknownColumnError):
            make(tmp_path, retain)
        return
    table = make(tmp_path, retain)
    assert [each.cutoff for each in table.maintenance.apply_retention(now=NOW).rules] == [cutoff]


@pytest.mark.parametrize(
    ("retain", "message"),
    [
        ("", "must be rules"),
        ("ts 30 days", "must be rules"),
        ("ts: 30 days;; day: 1 day", "must be rules"),
        ("ts: 30", "must be rules"),
        ("ts: 30 parsecs", "must be a whole number"),
        ("ts: 0 days", "above 0"),
        ("day: 5 hours", "does not fit column"),
        ("customer: 30 days", "does not fit column"),
        ("ts: 30 days where region > 'EU'", "must compare columns with values"),
        ("ts: 30 days where region = 'EU' OR customer = 'a'", "must compare columns with values"),
        ("ts: 30 days where ts = TIMESTAMP '2026-01-01'", "limits 'ts' twice"),
        ("ts: 30 days where 'unfinished", "must be rules"),
    ],
)
def test_invalid_retention_rule_is_rejected_when_set(tmp_path: Path, retain: str, message: str) -> None:
    table = make(tmp_path, "ts: 30 days")
    with pytest.raises(InvalidArgumentError, match=message):
        table.set_properties({RETAIN: retain})
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    with pytest.raises(InvalidArgumentError, match=message):
        catalog.create_table("db.other", SCHEMA, properties={RETAIN: retain})
    assert table.refresh().properties[RETAIN] == "ts: 30 days"


def test_retention_columns_are_protected_and_rules_have_one_age(tmp_path: Path) -> None:
    """MT-108."""
    table = make(tmp_path, "ts: 30 days where region = 'EU'")
    for name in ("ts", "region"):
        with pytest.raises(InvalidArgumentError, match="is used by the retention"), table.update_schema() as update:
            update.rename_column(name, "other")
        with pytest.raises(InvalidArgumentError, match="is used by the retention"), table.update_schema() as update:
            update.delete_column(name)
    with table.update_schema() as update:
        update.rename_column("customer", "client")

    catalog = tf.open_catalog(str(tmp_path / "lake"))
    window = tf.RangePartitions(
        on=["day"], bounds=[(date(2020, 1, 1), date(2020, 1, 9))], step="1 day", retain="30 days", ahead=1
    )
    columns = pa.schema([pa.field("day", pa.date32(), nullable=False), ("v", pa.int64())])
    with pytest.raises(InvalidArgumentError, match="both define how long"):
        catalog.create_table("db.a", columns, key=["day"], range_partitions=window, properties={RETAIN: "day: 9 days"})
    kept = catalog.create_table("db.b", columns, key=["day"], range_partitions=window)
    with pytest.raises(InvalidArgumentError, match="both define how long"):
        kept.set_properties({RETAIN: "day: 9 days"})
    plain = catalog.create_table("db.c", columns, key=["day"], properties={RETAIN: "day: 9 days"})
    with pytest.raises(InvalidArgumentError, match="both define how long"):
        plain.range_partitions.define(window)


def test_retention_in_run_and_health(tmp_path: Path) -> None:
    """MT-60, MT-110: the run applies retention and skips it without the property; health reports the rows that are
    due."""
    table = make(tmp_path, "ts: 30 days")
    today = datetime.now(UTC)
    old = pa.Table.from_pylist(
        [{"region": "EU", "ts": today - timedelta(days=age), "customer": f"c{age}", "day": None} for age in (1, 45)],
        SCHEMA,
    )
    table.append(old)
    (finding,) = [each for each in table.maintenance.health().findings if each.name == "overdue-retention"]
    assert "1 data file with 2 rows" in finding.what
    report = table.maintenance.run(only=["apply_retention", "convert_deletes"])
    assert report.report_of("apply_retention").result.data_files_count == 1
    assert customers(table) == ["c1"]
    assert not [each for each in table.maintenance.health().findings if "retention" in each.name]
    table.remove_properties(RETAIN)
    assert "no property" in table.maintenance.run(only=["apply_retention"]).report_of("apply_retention").reason


def test_foreign_retention_property_fails_only_this_job(tmp_path: Path) -> None:
    table = make(tmp_path, "ts: 30 days")
    table.append(AGES)
    with table.iceberg.transaction() as foreign:
        foreign.set_properties({RETAIN: "gone: 1 day"})
    table.refresh()
    with pytest.raises(TableFormatError, match="unknown column 'gone'"):
        table.maintenance.apply_retention()
    assert "unknown-retention" in [each.name for each in table.maintenance.health().findings]
    run = table.maintenance.run(only=["apply_retention", "rewrite_manifests"])
    assert [each.status.value for each in run.jobs] == ["failed", "done"]
