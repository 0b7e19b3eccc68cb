"""Scan plans: the files that each stage rules out, and the deletes of each task."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType
from scan_tables import TableBuilder, partitioned

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import DeleteKind
from tableformat.properties import RANGE_SPAN_BUDGET
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import plan_scan
from tableformat.scan.scan import Scan
from tableformat.write.delete_files.position_deletes import write_position_deletes

SCHEMA = Schema(
    NestedField(1, "p", StringType(), required=False),
    NestedField(2, "id", LongType(), required=True),
    NestedField(3, "d", DoubleType(), required=False),
)


def rows(*ids: int, p: str | None = "x", d: float | None = None) -> list[dict[str, Any]]:
    return [{"p": p, "id": id_, "d": d} for id_ in ids]


def table(path: Path, *fields: tuple[str, Any], **options: Any) -> TableBuilder:
    if fields:
        options["spec"] = partitioned(SCHEMA, *fields)
    return TableBuilder(path, SCHEMA, key=["id"], **options)


def ids_in(plan: ScanPlan, scan: Scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


def test_manifests_and_files_are_pruned_by_partition(tmp_path: Path) -> None:
    builder = table(tmp_path, ("p", IdentityTransform()))
    builder.append([*rows(1, p="a"), *rows(2, p="b")])
    builder.append(rows(3, p="c"))
    scan = builder.scan("p = 'b'")
    pruning = scan.plan().pruning
    assert (pruning.data_manifest_count, pruning.skipped_data_manifest_count) == (2, 1)
    assert (pruning.data_file_count, pruning.skipped_by_partition_count) == (2, 1)
    assert ids_in(scan.plan(), scan) == [2]


def test_manifest_of_only_removed_files_is_skipped(tmp_path: Path) -> None:
    catalog = new_lake(f"{tmp_path}/")
    schema = pa.schema([("p", pa.string()), ("id", pa.int64())])
    partitioned_table = catalog.create_table("db.t", schema, partition_by=("p",))
    partitioned_table.append(pa.table({"p": ["a"], "id": [1]}, schema=schema))
    partitioned_table.overwrite(pa.table({"p": ["b"], "id": [2]}, schema=schema))
    assert partitioned_table.scan("p = 'a'").to_arrow().num_rows == 0
    assert partitioned_table.scan("p = 'b'").to_arrow()["id"].to_pylist() == [2]


def test_identity_partition_needs_no_row_filter(tmp_path: Path) -> None:
    builder = table(tmp_path, ("p", IdentityTransform()))
    builder.append([*rows(1, 5, p="a"), *rows(2, p=None)])
    (task,) = builder.scan("p = 'a' AND id > 3").plan().tasks
    assert str(task.residual) == "GreaterThan(term=Reference(name='id'), literal=LongLiteral(3))"
    (task,) = builder.scan("p IS NULL").plan().tasks
    assert str(task.residual) == "AlwaysTrue()"


def test_buckets_prune_files(tmp_path: Path) -> None:
    builder = table(tmp_path, ("id", BucketTransform(8)))
    builder.append(rows(*range(100)))
    scan = builder.scan("id = 42")
    bucket = BucketTransform(8).transform(LongType())(42)
    assert [task.data_file.partition for task in scan.plan().tasks] == [(bucket,)]
    assert ids_in(scan.plan(), scan) == [42]


def test_files_are_pruned_by_bounds_and_full_matches_need_no_filter(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1, 2))
    builder.append(rows(5, 6))
    builder.append(rows(6, 9))
    scan = builder.scan("id <= 6 AND id > 4")
    plan = scan.plan()
    assert plan.pruning.skipped_by_bounds_count == 1
    assert str(plan.tasks[0].residual) == "AlwaysTrue()"
    assert ids_in(plan, scan) == [5, 6, 6]


def test_large_in_list_prunes_files(tmp_path: Path) -> None:
    builder, files = table(tmp_path), []
    for number in range(0, 10_000, 1_000):
        files += builder.append(rows(number, number + 1))
    wanted = ", ".join(str(number) for number in range(5_500, 6_002))
    scan = builder.scan(f"id IN ({wanted})")
    assert [task.data_file.file_path for task in scan.plan().tasks] == [files[6].file_path]
    assert ids_in(scan.plan(), scan) == [6_000, 6_001]


def test_nan_is_above_every_bound(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1, d=1.0))
    (second,) = builder.append([*rows(2, d=float("nan")), *rows(3, d=1.0)])
    scan = builder.scan("d > 100")
    assert ids_in(scan.plan(), scan) == [2]
    assert [task.data_file.file_path for task in scan.plan().tasks] == [second.file_path]


def test_files_covered_by_a_range_delete_are_not_planned(tmp_path: Path) -> None:
    """RD-10: covered whole, they are listed but not read."""
    builder = table(tmp_path)
    (covered,) = builder.append(rows(5, 6))
    builder.append(rows(6, 9))
    builder.append(rows(20))
    builder.delete_range(["id"], (5,), (9,))
    builder.append(rows(7))
    Path(covered.file_path).unlink()
    scan = builder.scan()
    plan = scan.plan()
    assert [file.file_path for file in plan.covered] == [covered.file_path]
    assert [len(task.range_deletes) for task in plan.tasks] == [1, 0, 0]
    assert ids_in(plan, scan) == [7, 9, 20]
    assert scan.count() == 3


def test_range_deletes_beyond_the_budget_are_planned_as_files(tmp_path: Path) -> None:
    """RD-2, RD-3: the files that may apply, by sequence number, scope and bounds; the scan returns the same rows."""
    for budget in ("1", "1000"):
        builder = table(tmp_path / budget, properties={RANGE_SPAN_BUDGET: budget})
        builder.append(rows(1, 2, 3))
        builder.delete_prefixes(["id"], [{"id": 2}])
        builder.delete_prefixes(["id"], [{"id": 100}])
        builder.append(rows(2, 4))
        builder.delete_prefixes(["id"], [{"id": 3}])
        scan = builder.scan()
        tasks = scan.plan().tasks
        assert ids_in(scan.plan(), scan) == [1, 2, 2 + 2]
        assert [bool(task.range_delete_files) for task in tasks] == ([True, True] if budget == "1" else [False, False])
        if budget == "1":
            assert [len(task.range_delete_files) for task in tasks] == [2, 1]


def test_deletes_excluded_by_the_filter_are_not_opened(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1, 2, 3, 50))
    (unneeded,) = builder.delete_rows(pa.table({"id": [50]}))
    (also_unneeded,) = builder.delete_prefixes(["id"], [{"id": 50}])
    builder.delete_rows(pa.table({"id": [2]}))
    for delete in (unneeded, also_unneeded):
        Path(delete.file_path).unlink()
    scan = builder.scan("id < 10")
    assert ids_in(scan.plan(), scan) == [1, 3]
    assert scan.plan().pruning.skipped_delete_file_count == 2
    assert scan.plan().delete_file_counts == {DeleteKind.EQUALITY: 1}


def test_delete_manifests_older_than_all_data_are_not_read(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    builder.delete_rows(pa.table({"id": [1]}))
    builder.append(rows(2))
    builder.manifests.pop(0)
    Path(builder.manifests[0].manifest_path).unlink()
    plan = builder.scan().plan()
    assert plan.pruning.skipped_delete_manifest_count == 1
    assert [task.has_deletes for task in plan.tasks] == [False]


def test_position_deletes_of_the_same_commit_apply(tmp_path: Path) -> None:
    """DA-1: though the number of the oldest data is theirs; other writers commit rows and deletes of them together."""
    builder = table(tmp_path)
    (data,) = builder.data_files(rows(1, 2, 3))
    deletes = write_position_deletes(builder.context, {data: PositionSet.from_array(np.array([1]))})
    builder.add([data, *deletes])
    scan = builder.scan()
    assert ids_in(scan.plan(), scan) == [1, 3]
    assert [task.has_deletes for task in scan.plan().tasks] == [True]


def test_only_files_with_matching_spans_are_planned(tmp_path: Path) -> None:
    """RD-10: the bounds of the files decide; the other files are read."""
    builder = table(tmp_path)
    for ids in ((1, 2), (5, 6), (8, 9)):
        builder.append(rows(*ids))
    spans = spans_of_prefixes(KeyColumns.of(builder.schema, [2]), pa.table({"id": [6, 7]}))
    plan = plan_scan(builder.view(), touching=spans)
    assert [task.data_file.sequence_number for task in plan.tasks] == [2]
    assert plan.pruning.skipped_by_bounds_count == 2


def test_plans_can_be_pickled(tmp_path: Path) -> None:
    builder = table(tmp_path)
    (data,) = builder.append(rows(1, 2, 3, 4, 5))
    builder.delete_prefixes(["id"], [{"id": 2}])
    builder.delete_rows(pa.table({"id": [3]}))
    builder.delete_positions(data, [0])
    plan = builder.scan("id < 5").plan()
    copy = pickle.loads(pickle.dumps(plan))
    (task,), (original,) = copy.tasks, plan.tasks
    assert task.data_file == original.data_file
    assert task.delete_files == original.delete_files
    assert task.residual == original.residual
    assert len(task.range_deletes[0]) == 1


def test_fully_replaced_file_is_not_read(tmp_path: Path) -> None:
    """RD-10, RD-14: no single span covers the file."""
    builder = table(tmp_path)
    builder.append(rows(5, 6, 7))
    builder.delete_prefixes(["id"], [{"id": 7}, {"id": 5}, {"id": 6}])
    plan = builder.scan("id < 50").plan()
    assert (len(plan.covered), len(plan.tasks)) == (1, 0)


def test_explanation_lists_verdicts_and_reasons(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    builder.append(rows(2, 6))
    builder.append(rows(3))
    builder.delete_prefixes(["id"], [{"id": 3}, {"id": 5}])
    builder.append(rows(100))
    explanation = builder.scan("id < 50").explain()
    assert {file.verdict: file.record_count for file in explanation.files} == {"clean": 1, "partial": 2, "covered": 1}
    (partial,) = explanation.of_verdict("partial")
    assert partial.reasons == ("2 newer deleted key ranges overlap its bounds",)
    text = str(explanation)
    assert "id < 50" in text
    assert "1 by column bounds, 1 covered by range deletes, 2 to read" in text
    assert json.loads(json.dumps(explanation.to_dict()))["pruning"]["data_file_count"] == 4


@pytest.mark.parametrize("small_file_bytes", [0, 100_000])
def test_analyze_reports_remaining_rows_of_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_file_bytes: int
) -> None:
    """Files that are read one by one, and many together; a file without remaining rows is not opened."""
    monkeypatch.setattr("tableformat.merge_on_read.small_files.batches.SMALL_FILE_BYTES", small_file_bytes)
    builder = table(tmp_path)
    (gone,) = builder.append(rows(6, 7))
    (data,) = builder.append(rows(1, 2, 3, 4, 5))
    builder.append(rows(9))
    builder.delete_prefixes(["id"], [{"id": 2}])
    builder.delete_rows(pa.table({"id": [3]}))
    builder.delete_positions(data, [0])
    builder.delete_positions(gone, [0, 1])
    scan = builder.scan("id < 5 OR id = 9")
    explanation = scan.explain(analyze=True)
    steps = {step.step: (step.file_count, step.row_count) for step in explanation.steps}
    assert steps == {
        "plan": (2, 6),
        "find deleted rows": (1, 3),
        "open files": (2, 6),
        "decode": (2, 6),
        "drop deleted rows": (2, 3),
        "filter": (2, 2),
        "return": (0, 2),
    }
    assert scan.count() == 2
    assert "find deleted rows" in str(explanation)
    assert "find deleted rows" in explanation._repr_html_()
    limited = Scan(scan.view, limit=1).explain(analyze=True).steps[-1]
    assert (limited.step, limited.row_count) == ("return", 1)


@pytest.mark.parametrize("where", [None, "id = 500", "id > 5 OR d IS NULL"])
def test_filtered_plan_agrees_with_filtering_all_rows(tmp_path: Path, where: str | None) -> None:
    builder = table(tmp_path, ("id", BucketTransform(3)))
    builder.append(rows(*range(0, 1000, 100), d=1.0))
    builder.append(rows(*range(10)))
    builder.delete_prefixes(["id"], [{"id": 500}, {"id": 7}])
    everything = builder.scan().to_arrow().to_pylist()
    if where == "id = 500":
        kept = []
    else:
        kept = [row["id"] for row in everything if where is None or row["id"] > 5 or row["d"] is None]
    scan = builder.scan(where)
    assert ids_in(scan.plan(), scan) == sorted(kept)


@pytest.mark.parametrize("small_file_bytes", [-1, 1_000_000])
def test_missing_partition_column_has_the_partition_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_file_bytes: int
) -> None:
    """As in files that were imported from directories; read one by one, and many together."""
    monkeypatch.setattr("tableformat.merge_on_read.small_files.batches.SMALL_FILE_BYTES", small_file_bytes)
    builder = table(tmp_path, ("p", IdentityTransform()))
    for data in builder.append([*rows(1, 2, p="a"), *rows(3, p="b")]):
        path = data.file_path.removeprefix("file://")
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["p"]), path)
        size_bytes = Path(path).stat().st_size
        builder.rewrite(data, lambda entry, size_bytes=size_bytes: replace(entry, file_size_bytes=size_bytes))
    found = builder.scan().to_arrow()
    assert sorted(zip(found["id"].to_pylist(), found["p"].to_pylist(), strict=True)) == [(1, "a"), (2, "a"), (3, "b")]
    assert builder.scan("p = 'b'").to_arrow()["id"].to_pylist() == [3]


def test_explanation_lists_residual_filters(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1, 2))
    builder.append(rows(5, 60))
    explanation = builder.scan("id < 50").explain()
    assert {file.record_count: file.residual for file in explanation.files if file.residual is None} == {2: None}
    assert sorted(str(file.residual) for file in explanation.files) == ["None", "id < 50"]
    text = str(explanation)
    assert text.count("rows are filtered by id < 50") == 1
    assert f"snapshot {builder.scan().plan().snapshot_id}" in text
    assert "clean (2)" in text


@pytest.mark.parametrize("file_count", [20, 21])
def test_explanation_lists_some_files_and_counts_the_rest(tmp_path: Path, file_count: int) -> None:
    builder = table(tmp_path)
    for number in range(file_count):
        builder.append(rows(number))
    lines = str(builder.scan().explain()).splitlines()
    assert sum("1 rows, sequence number" in line for line in lines) == 20
    assert [line.strip() for line in lines if "more" in line] == ["and 1 more"] * (file_count - 20)
