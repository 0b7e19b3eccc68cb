"""The text of a health report: every number appears once, in its proper position."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

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


def cells(health: TableHealth) -> list[str]:
    """The texts of the HTML display, without its bars."""
    without_style = re.sub("<style>.*</style>", "", health._repr_html_())
    return [text for text in re.split("<[^>]*>", without_style) if text]


def bars(health: TableHealth) -> list[tuple[int, str]]:
    """Width and colour of each."""
    found = re.findall(r"width:(\d+)px;height:10px;border-radius:2px;background:(#\w+)", health._repr_html_())
    return [(int(width), colour) for width, colour in found]


def test_text() -> None:
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


def test_picture() -> None:
    lookup = ["a key lookup opens", "1.2 files on average, 1,003 at most"]
    expected = ["Health of db.t, branch side", "read amplification", "times", "current", "1.50"]
    expected += ["converted and compacted", "1.00", "data files", "4, 12.3 MB, 1,002 small", "rows"]
    expected += ["1,234,567, 12.5% deleted by position or in covered files", "delete files"]
    expected += ["1,004 equality, 2.5 GB; 1 range, 1.0 KB", *lookup, "how data files read", "files", "clean", "1"]
    expected += ["positions deleted", "2", "keys compared", "3", "dead weight", "4", "To do", "Many are small:"]
    assert cells(HEALTH) == [*expected, "compact", "Many are old:", "expire"]
    nothing = cells(EMPTY)
    assert (nothing[0], nothing[-1]) == ("Health of db.t", "Nothing to do.")
    assert nothing[nothing.index("delete files") + 1] == "none"
    assert "a key lookup opens" not in nothing


def test_bars_are_as_long_as_what_they_tell_of() -> None:
    of_files = [(60, "#4c9f70"), (120, "#4c8dd6"), (180, "#d9902f"), (240, "#d65f5f")]
    assert bars(HEALTH) == [(240, "#4c9f70"), (160, "#4c9f70"), *of_files]
    assert bars(replace(EMPTY, data_file_count=1, clean_file_count=1))[2] == (240, "#4c9f70")
    assert bars(EMPTY)[2:] == [(0, colour) for _, colour in of_files]


@pytest.mark.parametrize(
    ("times", "colour"), [(1.0, "#4c9f70"), (1.5, "#4c9f70"), (1.6, "#d9902f"), (3.0, "#d9902f"), (3.1, "#d65f5f")]
)
def test_colour_of_what_reading_costs(times: float, colour: str) -> None:
    assert bars(replace(HEALTH, read_amplification=times))[:2] == [(240, colour), (round(240 / times), "#4c9f70")]


def test_share_of_files_without_keys_to_compare() -> None:
    assert HEALTH.to_dict()["clean_file_share"] == 0.75
    assert EMPTY.clean_file_share == 1.0
