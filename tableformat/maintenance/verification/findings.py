"""What a verification found, as data (MT-70)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tableformat.markup.results import HtmlResult


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Rows cannot be read, or some reader may read wrong ones."""
    WARNING = "warning"
    """Every reader of the format returns the right rows."""


class FindingKind(StrEnum):
    """What is wrong."""

    MISSING_FILE = "missing-file"
    """A file that a retained snapshot needs is not there."""
    WRONG_SIZE = "wrong-size"
    """The file is not as long as the metadata states: it was cut off, or is another one."""
    UNREADABLE_FILE = "unreadable-file"
    """The file is not what it claims to be."""
    WRONG_CHECKSUM = "wrong-checksum"
    """Bytes were changed after they had been written."""
    WRONG_COUNT = "wrong-count"
    """The metadata states another number of files, rows, nulls or positions than there are."""
    WRONG_BOUNDS = "wrong-bounds"
    """A value lies outside of the bounds stated: filters may leave its file out."""
    WRONG_ORDER = "wrong-order"
    """The sort marker promises an order that the rows do not have (RD-11)."""
    WRONG_PARTITION = "wrong-partition"
    """Rows of other partitions than the one stated."""
    WRONG_POSITION = "wrong-position"
    """A position delete or vector names rows that the data file does not have."""
    WRONG_SPANS = "wrong-spans"
    """A manifest entry carries other spans than its range delete file (RD-13), or spans are newer than the file."""
    WRONG_SEQUENCE_NUMBER = "wrong-sequence-number"
    """Numbers that no order of commits gives (DA-9): deletes may reach other rows than they should."""
    WRONG_ROW_IDS = "wrong-row-ids"
    """Row ids that are missing, given twice, or not given yet."""
    DUPLICATE_FILE = "duplicate-file"
    """A file is live twice in one snapshot: its rows are read twice."""
    DUPLICATE_VECTOR = "duplicate-vector"
    """A data file has two deletion vectors in one snapshot (DA-7)."""
    UNKNOWN_COLUMN = "unknown-column"
    """A delete file goes by a column that no schema of the table has had."""
    UNKNOWN_SPEC = "unknown-spec"
    """A manifest is of a partition spec that the table does not have."""
    BROKEN_REFERENCE = "broken-reference"
    """A branch or tag is at a snapshot that is not retained."""
    DANGLING_VECTOR = "dangling-vector"
    """A deletion vector whose data file is not live."""
    DEAD_DELETE = "dead-delete"
    """A position delete file all of whose data files are not live."""
    WRONG_TOTAL = "wrong-total"
    """The summary of a snapshot states other totals than its manifests. No reader needs them."""
    MISSING_STATISTICS = "missing-statistics"
    """A statistics file is not there. No reader needs it."""
    MISSING_LOG = "missing-log"
    """An older metadata file of the metadata log is not there. No reader needs it."""
    NOT_CHECKED = "not-checked"
    """A file of a form that this library cannot read."""


_WARNINGS: Final = frozenset(
    {
        FindingKind.DANGLING_VECTOR,
        FindingKind.DEAD_DELETE,
        FindingKind.WRONG_TOTAL,
        FindingKind.MISSING_STATISTICS,
        FindingKind.MISSING_LOG,
        FindingKind.NOT_CHECKED,
    }
)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that a check found, before it is known what to do about it."""

    kind: FindingKind
    location: str
    """The file that is wrong, or that states what is wrong."""
    what: str
    """One clause with the numbers."""
    number: int | None = None
    """Which file of the census it is about, where several vectors are at one location."""

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.kind in _WARNINGS else Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFinding:
    """Something that is not as it should be."""

    kind: FindingKind
    severity: Severity
    file: str
    """Location of the file that is wrong, or of the one that states what is wrong."""
    what: str
    """One clause with the numbers."""
    next_step: str
    """What to do about it."""
    command: str | None = None
    """A call that does so."""
    snapshot_ids: tuple[int, ...] = ()
    """The verified snapshots that need the file, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult(HtmlResult):
    """What was looked at, and what was found; prints as text."""

    table: str
    branch: str
    deep: bool
    """Whether the files were read, or only their metadata."""
    snapshot_count: int
    manifest_count: int
    data_file_count: int
    delete_file_count: int
    row_count: int = 0
    """Rows of data files that were read; 0 without `deep`."""
    unchecksummed_file_count: int = 0
    """Parquet files that were read and hold no page checksums: a changed value in them cannot be told."""
    duration_seconds: float = 0.0
    findings: tuple[VerificationFinding, ...] = ()
    """Errors first."""

    @property
    def is_clean(self) -> bool:
        """Whether there is no finding of severity error."""
        return not self.errors

    @property
    def errors(self) -> tuple[VerificationFinding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[VerificationFinding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.WARNING)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {**dataclasses.asdict(self), "is_clean": self.is_clean}

    def __str__(self) -> str:
        looked_at = ", ".join(
            _counted(number, noun)
            for number, noun in (
                (self.snapshot_count, "snapshot"),
                (self.manifest_count, "manifest"),
                (self.data_file_count, "data file"),
                (self.delete_file_count, "delete file"),
            )
        )
        lines = [f"{self.table} (branch {self.branch}): {looked_at}"]
        if self.deep:
            unchecked = _counted(self.unchecksummed_file_count, "file")
            lines.append(f"  read {_counted(self.row_count, 'row')}; {unchecked} without checksums")
        if not self.findings:
            return "\n".join([*lines, "nothing is wrong"])
        counts = Counter(f"{each.severity}: {each.kind}" for each in self.findings)
        lines += [f"  {count:,} {kind}" for kind, count in counts.items()]
        for each in self.findings:
            lines += [f"{each.severity}: {each.kind}: {each.file}", f"  {each.what}", f"  {each.next_step}"]
            lines += [f"      {each.command}"] if each.command is not None else []
        return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
