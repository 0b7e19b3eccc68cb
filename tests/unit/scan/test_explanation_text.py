"""The text of a plan, of its explanation and of its report: each number appears once, in its proper position."""

from __future__ import annotations

from dataclasses import asdict, replace
from random import Random

from bounded_files import bounded_files
from pyiceberg.expressions import AlwaysTrue, EqualTo

from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import PARQUET, DataFile, DeleteFile, FileContent
from tableformat.scan.explain import LISTED_FILES, explain_plan
from tableformat.scan.measures import StepMeasures
from tableformat.scan.plan import PruningCounts, ScanPlan
from tableformat.scan.scan_report import scan_counts

PRUNING = PruningCounts(
    data_manifest_count=11,
    skipped_data_manifest_count=2,
    delete_manifest_count=13,
    skipped_delete_manifest_count=4,
    data_file_count=60,
    skipped_by_partition_count=20,
    skipped_by_bounds_count=15,
    skipped_by_bloom_filter_count=7,
    delete_file_count=19,
    skipped_delete_file_count=8,
)


STEPS = (StepMeasures("decode", 0.25, 3, 12_345, 2_000_000), StepMeasures("return", 1.5, 3, 7, 900))


def data_file(name: str, record_count: int, size_bytes: int) -> DataFile:
    (data,) = bounded_files([], Random(1), 1)
    return replace(data, file_path=f"file:/t/{name}", record_count=record_count, file_size_bytes=size_bytes)


def delete_file(name: str, content: FileContent, **fields: object) -> DeleteFile:
    return DeleteFile(
        file_path=f"file:/t/{name}",
        file_format=PARQUET,
        content=content,
        spec_id=0,
        partition=(),
        record_count=1,
        file_size_bytes=100,
        sequence_number=9,
        **fields,  # type: ignore[arg-type]
    )


EQUALITY = [delete_file(f"e{number}", FileContent.EQUALITY_DELETES, equality_ids=(1,)) for number in range(22)]


POSITIONS = delete_file("p", FileContent.POSITION_DELETES)


VECTOR = replace(
    delete_file("v.puffin", FileContent.POSITION_DELETES),
    file_format="PUFFIN",
    referenced_data_file="file:/t/partial",
    content_offset=4,
    content_size_bytes=30,
)


PLAN = ScanPlan(
    snapshot_id=5,
    where=EqualTo("id", 1),
    tasks=(
        FileScanTask(data_file=data_file("clean", 1_000, 5_000), residual=AlwaysTrue(), reasons=("none applies",)),
        FileScanTask(
            data_file=data_file("partial", 2_000, 6_000),
            equality_deletes=tuple(EQUALITY),
            position_deletes=(POSITIONS,),
            deletion_vector=VECTOR,
            residual=EqualTo("id", 1),
            reasons=("rows are named", "keys overlap"),
        ),
    ),
    covered=tuple(data_file(f"covered-{number}", 500, 700) for number in range(LISTED_FILES + 2)),
    pruning=PRUNING,
)


def test_explanation_text() -> None:
    lines = str(explain_plan(PLAN, STEPS)).splitlines()
    assert lines[:10] == [
        "Scan of snapshot 5, where id = 1",
        "  manifests   11 of data, 2 of them ruled out by partition or key; 13 of deletes, 4 of them not needed",
        "  data files  60 in the manifests read: 20 ruled out by partition, 15 by column bounds, 7 by Bloom filters, "
        "22 covered by range deletes, 2 to read",
        "  to read     3,000 rows before deletes and filter, 11,000 bytes",
        "  deletes     19 delete files seen, 8 cannot matter; to open: 1 deletion-vector, 22 equality, 1 position",
        "  step                    time     files          rows      size",
        "  decode                250 ms         3        12,345    2.0 MB",
        "  return                 1.5 s         3             7     900 B",
        "  clean (1)",
        "    file:/t/clean  1,000 rows, sequence number 1",
    ]
    listed = [f"      equality file:/t/e{number}, sequence number 9" for number in range(18)]
    assert lines[10:] == [
        "      none applies",
        "  partial (1)",
        "    file:/t/partial  2,000 rows, sequence number 1",
        "      rows are named",
        "      keys overlap",
        "      rows are filtered by id = 1",
        "      position file:/t/p, sequence number 9",
        "      deletion-vector file:/t/v.puffin, sequence number 9",
        *listed,
        "  covered (22)",
        *(
            line
            for number in range(LISTED_FILES)
            for line in (
                f"    file:/t/covered-{number}  500 rows, sequence number 1",
                "      newer deleted key ranges cover all its keys",
            )
        ),
        "    and 2 more",
    ]


def test_explanation_as_a_dictionary() -> None:
    explanation = explain_plan(PLAN, STEPS)
    told = explanation.to_dict()
    assert told["pruning"] == asdict(PRUNING)
    assert told["delete_file_counts"] == {"position": 1, "deletion-vector": 1, "equality": 22}
    assert [file["verdict"] for file in told["files"]][:3] == ["clean", "partial", "covered"]
    assert [file["residual"] for file in told["files"]][:3] == [None, "id = 1", None]
    assert told["files"][1]["deletes"][-1] == {"kind": "equality", "file_path": "file:/t/e21", "sequence_number": 9}


def test_counts_of_the_report() -> None:
    assert scan_counts(PLAN) == {
        "result-data-files": 2,
        "result-delete-files": 24,
        "total-data-manifests": 11,
        "total-delete-manifests": 13,
        "scanned-data-manifests": 9,
        "scanned-delete-manifests": 9,
        "skipped-data-manifests": 2,
        "skipped-delete-manifests": 4,
        "skipped-data-files": 20 + 15 + 7 + 22,
        "skipped-delete-files": 8,
        "indexed-delete-files": 11,
        "equality-delete-files": 22,
        "positional-delete-files": 1,
        "dvs": 1,
        "range-delete-files": 0,
        "total-file-size-in-bytes": 11_000,
        "total-delete-file-size-in-bytes": 22 * 100 + 100 + 30,
    }
