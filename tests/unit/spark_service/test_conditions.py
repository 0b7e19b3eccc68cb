"""The argument `where` of procedures."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from spark_ext.service.procedures.conditions import FileCondition, condition, file_condition
from spark_ext.service.procedures.rewrites import rewrite_data_files
from tableformat import Catalog, Table, open_catalog
from tableformat.errors import TableFormatError

SCHEMA = pa.schema(
    [("c1", pa.int64()), ("Dup", pa.int64()), ("dup", pa.int64()), ("s", pa.struct([("in", pa.string())]))]
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("C1 > 0", "c1 > 0"),
        ("c1 > 0 AND C1 < 5", "c1 > 0 AND c1 < 5"),
        ('S.IN = "a"', "s.in = 'a'"),
        ("DUP = 1", "DUP = 1"),
        ("dup = 1", "dup = 1"),
        ("nothing = 1", "nothing = 1"),
    ],
)
def test_names_are_spelled_as_the_table_spells_them(tmp_path: object, where: str, expected: str) -> None:
    """PR-8."""
    catalog: Catalog = open_catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    found = condition(where, table)
    assert found is not None
    assert found.replace('"', "") == expected


@pytest.fixture
def bucketed(tmp_path: object) -> Table:
    """A file for each day and bucket: the ids 0 to 3 on two days."""
    catalog: Catalog = open_catalog(str(tmp_path))
    catalog.create_namespace("db")
    schema = pa.schema([("Id", pa.int64()), ("day", pa.date32())])
    table = catalog.create_table("db.t", schema, partition_by=["bucket(4, Id)", "days(day)"])
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    table.append(pa.table({"Id": [*range(4)] * 2, "day": [day for day in days for _ in range(4)]}))
    return table


def chosen(table: Table, where: str) -> tuple[str | None, list[tuple[int, int]]]:
    found = file_condition(where, table)
    tasks = table.scan().plan().tasks
    assert found.only_paths is not None
    return found.where, [t.data_file.partition for t in tasks if t.data_file.file_path in found.only_paths]


def test_functions_of_the_catalog_choose_files_by_partition(bucketed: Table) -> None:
    """PR-8: parts of an AND; columns beside them choose as ever."""
    every = [task.data_file.partition for task in bucketed.scan().plan().tasks]
    bucket = every[0][0]
    of_bucket = [each for each in every if each[0] == bucket]
    assert 0 < len(of_bucket) < len(every)
    assert chosen(bucketed, f"lake.system.bucket(4, ID) = {bucket}") == (None, of_bucket)
    assert chosen(bucketed, f"{bucket} = system.BUCKET(4, `Id`) AND id < 3")[0] == "Id < 3"
    assert chosen(bucketed, f"NOT (lake.system.bucket(4, id) = {bucket})")[1] == [
        e for e in every if e not in of_bucket
    ]
    second = [each for each in every if each[1] == every[-1][1]]
    for where in ("= DATE '2026-01-02'", "> date('2026-01-01')", "BETWEEN DATE '2026-01-02' AND DATE '2027-01-01'"):
        assert chosen(bucketed, f"lake.system.days(day) {where}") == (None, second)
    assert (
        chosen(bucketed, "lake.system.days(day) IN (DATE '2026-01-02') OR lake.system.bucket(4, id) < 0")[1] == second
    )
    assert chosen(bucketed, "lake.system.bucket(7, id) = 0")[1] == every, "of another width nothing is known"
    assert file_condition("id > 3", bucketed) == FileCondition("Id > 3")


def test_only_the_chosen_files_are_rewritten(bucketed: Table) -> None:
    """PR-8."""
    bucketed.append(pa.table({"Id": [0], "day": [date(2026, 1, 1)]}))
    before = {task.data_file.file_path for task in bucketed.scan().plan().tasks}
    bucket = bucketed.scan(where="Id = 0 AND day = '2026-01-01'").plan().tasks[0].data_file.partition[0]
    where = f"lake.system.bucket(4, Id) = {bucket} AND lake.system.days(day) = DATE '2026-01-01'"
    [row] = rewrite_data_files(bucketed, options={"rewrite-all": "true"}, where=where)
    after = {task.data_file.file_path for task in bucketed.refresh().scan().plan().tasks}
    assert (row["rewritten_data_files_count"], len(before - after), len(after - before)) == (2, 2, 1)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("system.buckets(4, id) = 1", "is no function of the catalog. Those are system.bucket"),
        ("lake.other.bucket(4, id) = 1", "is no function of the catalog"),
        ("system.bucket(id) = 1", r"should be system.bucket\(4, column\)"),
        ("system.bucket(0, id) = 1", "should be system.bucket"),
        ("system.days(2, day) = 1", r"should be system.days\(column\)"),
        ("system.days(dey) = 1", "Did you mean 'day'"),
        ("system.days(day) = date('soon')", "'soon' is no date"),
        ("system.bucket(4, id) = id + 1", "compare those, and columns, with constants"),
    ],
)
def test_functions_that_choose_nothing(bucketed: Table, where: str, message: str) -> None:
    """PR-3, PR-8."""
    with pytest.raises(TableFormatError, match=message):
        file_condition(where, bucketed)
