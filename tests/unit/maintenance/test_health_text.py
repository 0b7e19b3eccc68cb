"""The text of a health report: every number appears once, in its proper position."""

from __future__ import annotations

from dataclasses import replace

from tableformat.maintenance.health.health import DeleteFileCounts, Finding, LookupDepth, TableHealth

HEALTH = TableHealth(
    table="db.t",
    branch="side",
    snapshot_id=7,
    data_file_count=4,
    data_bytes=12_345_678,
    record_count=1_234_567,
    small_file_count=1_002,
    deleted_row_ratio=0.125,
    clean_file_count=1,
    position_deleted_file_count=2,
    partial_file_count=3,
    covered_file_count=4,
    lookup_depth=LookupDepth(average=1.25, largest=1_003),
    delete_files=(
        DeleteFileCounts(
            kind="equality", file_count=1_004, total_bytes=2_500_000_000, deleted_count=1_005, oldest_age_seconds=3.6e8
        ),
        DeleteFileCounts(kind="range", file_count=1, total_bytes=1_000, deleted_count=2, oldest_age_seconds=None),
    ),
    dead_delete_file_count=5,
    read_amplification=1.5,
    manifest_count=1_006,
    manifest_bytes=3_000_000,
    snapshot_count=1_007,
    metadata_bytes=4_000_000,
    findings=(
        Finding(name="small-files", what="Many are small", command="compact"),
        Finding(name="snapshots", what="Many are old", command="expire"),
    ),
)
EMPTY = replace(
    HEALTH,
    branch="main",
    data_file_count=0,
    clean_file_count=0,
    position_deleted_file_count=0,
    partial_file_count=0,
    covered_file_count=0,
    lookup_depth=None,
    delete_files=(),
    read_amplification=1.0,
    findings=(),
)


def test_health_report_text() -> None:
    assert str(HEALTH).splitlines() == [
        "db.t (branch side, snapshot 7)",
        "  read amplification   1.50",
        "  data files           4 of 12.346 MB, 1,234,567 rows, 1,002 small",
        "  deleted rows         12.5% named by position or in covered files",
        "  how files read       1 clean, 2 with deleted positions, 3 partial, 4 covered",
        "  a key lookup opens   1.2 files on average, 1,003 at most",
        "  equality deletes     1,004 files of 2,500.000 MB, 1,005 entries, oldest 100,000.0 h old",
        "  range deletes        1 files of 0.001 MB, 2 entries",
        "  metadata             1,007 snapshots, 4.000 MB metadata file, 1,006 manifests of 3.000 MB",
        "to do",
        "  Many are small",
        "      compact",
        "  Many are old",
        "      expire",
    ]
    assert str(EMPTY).splitlines()[4:] == [
        "  how files read       0 clean, 0 with deleted positions, 0 partial, 0 covered",
        "  metadata             1,007 snapshots, 4.000 MB metadata file, 1,006 manifests of 3.000 MB",
        "nothing to do",
    ]


def test_clean_file_share_without_key_bounds() -> None:
    assert HEALTH.to_dict()["clean_file_share"] == 0.75
    assert EMPTY.clean_file_share == 1.0
