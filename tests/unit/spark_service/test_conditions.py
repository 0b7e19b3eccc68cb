"""The argument `where` of procedures, as Spark predicates."""

from __future__ import annotations

from datetime import date, time
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import BooleanExpression, EqualTo, LessThan, Reference

from spark_ext.service.procedures.argument_values import python_value
from spark_ext.service.procedures.conditions import FileCondition, Part, file_condition
from spark_ext.service.procedures.rewrites import convert_deletes, rewrite_data_files, rewrite_position_delete_files
from tableformat import Catalog, Table, open_catalog
from tableformat.errors import InvalidArgumentError, InvalidPredicateError

SECOND = (date(2026, 1, 2) - date(1970, 1, 1)).days
ID: dict[str, Any] = {"column": ["Id"]}
DAY: dict[str, Any] = {"column": ["day"]}


def literal(value: int, kind: str = "integer") -> dict[str, Any]:
    return {"literal": str(value), "type": kind}


def call(name: str, column: dict[str, Any], *widths: int) -> dict[str, Any]:
    return {"transform": name, "arguments": [*map(literal, widths), column]}


def is_(operator: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "arguments": list(arguments)}


UPPER_IS_A = is_("=", {"unknown": "upper(Id)"}, {"literal": "A", "type": "string"})


def parts(*predicates: dict[str, Any]) -> tuple[Part, ...]:
    return Part.all_of([[f"part {index}", predicate] for index, predicate in enumerate(predicates)])


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


def chosen(table: Table, *predicates: dict[str, Any]) -> tuple[BooleanExpression | None, list[tuple[int, int]]]:
    found = file_condition(parts(*predicates), table)
    tasks = table.scan().plan().tasks
    assert found.only_paths is not None
    return found.where, [t.data_file.partition for t in tasks if t.data_file.file_path in found.only_paths]


def test_where_parts_combine_to_one_filter(bucketed: Table) -> None:
    """PR-8."""

    def condition(*predicates: dict[str, Any]) -> BooleanExpression | None:
        found = file_condition(parts(*predicates), bucketed)
        assert found.only_paths is None
        return found.where

    assert file_condition(None, bucketed) == FileCondition(None)
    assert file_condition((), bucketed) == FileCondition(None), "a condition that is always true"
    one = condition(is_("=", ID, literal(3)))
    assert one is not None
    assert bucketed.scan(where=one).to_arrow()["Id"].to_pylist() == [3, 3]
    both = condition(is_("=", ID, literal(3)), is_("=", DAY, literal(SECOND, "date")))
    assert both is not None
    assert bucketed.scan(where=both).to_arrow().to_pylist() == [{"Id": 3, "day": date(2026, 1, 2)}]
    days = condition(is_("=", call("days", DAY), literal(SECOND, "date")))
    assert days is not None, "functions that are ranges of their column are filters in every procedure"
    assert bucketed.scan(where=days).to_arrow()["day"].to_pylist() == [date(2026, 1, 2)] * 4


def test_catalog_functions_select_files_by_partition(bucketed: Table) -> None:
    """PR-8: other columns select files as usual."""
    every = [task.data_file.partition for task in bucketed.scan().plan().tasks]
    bucket = every[0][0]
    of_bucket = [each for each in every if each[0] == bucket]
    others = [each for each in every if each[0] != bucket]
    assert of_bucket
    assert others
    asked = is_("=", call("bucket", ID, 4), literal(bucket))
    assert chosen(bucketed, asked) == (None, of_bucket)
    mirrored = is_("=", literal(bucket), call("bucket", ID, 4))
    where, paths = chosen(bucketed, mirrored, is_("<", ID, literal(3)))
    assert (where, paths) == (LessThan(Reference("Id"), 3), of_bucket)
    assert chosen(bucketed, is_("NOT", asked)) == (None, others)
    either = is_("OR", asked, is_("=", call("days", DAY), literal(SECOND, "date")))
    second = every[-1][1]
    assert chosen(bucketed, either)[1] == [each for each in every if each[0] == bucket or each[1] == second]
    assert chosen(bucketed, is_("=", call("bucket", ID, 7), literal(0)))[1] == every, (
        "of another width nothing is known"
    )
    assert file_condition(parts(is_("=", ID, literal(3))), bucketed) == FileCondition(EqualTo(Reference("Id"), 3))


def test_only_selected_files_are_rewritten(bucketed: Table) -> None:
    """PR-8."""
    bucketed.append(pa.table({"Id": [0], "day": [date(2026, 1, 1)]}))
    before = {task.data_file.file_path for task in bucketed.scan().plan().tasks}
    bucket = bucketed.scan(where="Id = 0 AND day = '2026-01-01'").plan().tasks[0].data_file.partition[0]
    where = parts(
        is_("=", call("bucket", ID, 4), literal(bucket)), is_("=", call("days", DAY), literal(SECOND - 1, "date"))
    )
    [row] = rewrite_data_files(bucketed, options={"rewrite-all": "true"}, where=where)
    after = {task.data_file.file_path for task in bucketed.refresh().scan().plan().tasks}
    assert (row["rewritten_data_files_count"], len(before - after), len(after - before)) == (2, 2, 1)


@pytest.mark.parametrize(
    "predicate",
    [
        UPPER_IS_A,
        is_("OR", is_("=", call("bucket", ID, 4), literal(1)), UPPER_IS_A),
        is_("=", call("bucket", ID, 0), literal(1)),
        is_("=", call("bucket", ID, 4), ID),
        is_("=", ID, DAY),
        is_("ENDS_WITH", ID, {"literal": "A", "type": "string"}),
    ],
)
def test_where_that_selects_no_files_is_rejected(bucketed: Table, predicate: dict[str, Any]) -> None:
    """PR-3, PR-8: an error, rather than every file."""
    with pytest.raises(InvalidPredicateError):
        file_condition(parts(predicate), bucketed)


def test_every_procedure_selects_by_partition(tmp_path: object) -> None:
    """PR-8: data files in other partitions keep their deletes."""
    catalog: Catalog = open_catalog(str(tmp_path))
    catalog.create_namespace("db")
    schema = pa.schema([("Id", pa.int64()), ("n", pa.int64())])
    table = catalog.create_table("db.t", schema, partition_by=["bucket(4, Id)"])
    table.append(pa.table({"Id": [*range(8)] * 4, "n": [n for n in range(4) for _ in range(8)]}))
    bucket = table.scan().plan().tasks[0].data_file.partition[0]
    where = parts(is_("=", call("bucket", ID, 4), literal(bucket)))

    def deletes_by_bucket() -> dict[int, set[str]]:
        tasks = table.refresh().scan().plan().tasks
        return {task.data_file.partition[0]: {each.file_path for each in task.delete_files} for task in tasks}

    def deletes_of_other_buckets() -> dict[int, set[str]]:
        return {each: deletes for each, deletes in deletes_by_bucket().items() if each != bucket}

    table.delete("n = 0", mode="equality")
    before, others = deletes_by_bucket(), deletes_of_other_buckets()
    [row] = convert_deletes(table, where=where)
    assert row["removed_equality_delete_files_count"] == 0, "others need it"
    assert (row["added_position_delete_files_count"], deletes_of_other_buckets()) == (1, others)
    for number in (1, 2):
        table.delete(f"n = {number}", mode="scan")
    others = deletes_of_other_buckets()
    [row] = rewrite_position_delete_files(table, where=where)
    assert (row["added_delete_files_count"], deletes_of_other_buckets()) == (1, others)
    assert before.keys() == {bucket, *others}
    assert table.refresh().scan().to_arrow()["n"].to_pylist() == [3] * 8


def test_time_of_day_argument_is_accepted() -> None:
    """PR-7: Spark's are nanoseconds, and columns have microseconds."""
    assert python_value({"literal": "5400000005000", "type": "time(6)"}) == time(1, 30, 0, 5)
    with pytest.raises(InvalidArgumentError, match="of Spark's type time"):
        python_value({"literal": "5400000005001", "type": "time(9)"})
