"""The findings of a verification, as data (MT-70)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tableformat.markup.results import HtmlResult


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """Rows cannot be read, or a reader may return wrong rows."""
    WARNING = "warning"
    """Every reader of the format returns the right rows."""


class FindingKind(StrEnum):
    """The kind of a finding."""

    MISSING_FILE = "missing-file"
    """A file that a retained snapshot needs does not exist."""
    WRONG_SIZE = "wrong-size"
    """The length of the file differs from the metadata: it was truncated, or is a different file."""
    UNREADABLE_FILE = "unreadable-file"
    """The file does not have the format that it claims to have."""
    WRONG_CHECKSUM = "wrong-checksum"
    """Bytes were changed after they were written."""
    WRONG_COUNT = "wrong-count"
    """The number of files, rows, nulls or positions differs from the metadata."""
    WRONG_BOUNDS = "wrong-bounds"
    """A value is outside the stated bounds, so filters may skip its file."""
    WRONG_ORDER = "wrong-order"
    """The rows are not in the order of the sort marker (RD-11)."""
    WRONG_PARTITION = "wrong-partition"
    """Rows belong to other partitions than the stated one."""
    WRONG_POSITION = "wrong-position"
    """A position delete or vector names rows that the data file does not have."""
    WRONG_SPANS = "wrong-spans"
    """A manifest entry has other spans than its range delete file (RD-13), or spans are newer than the file."""
    WRONG_SEQUENCE_NUMBER = "wrong-sequence-number"
    """Sequence numbers that no order of commits produces (DA-9). Deletes may reach wrong rows."""
    WRONG_ROW_IDS = "wrong-row-ids"
    """Row ids that are missing, used twice, or not assigned yet."""
    DUPLICATE_FILE = "duplicate-file"
    """A file is live twice in one snapshot, so its rows are read twice."""
    DUPLICATE_VECTOR = "duplicate-vector"
    """A data file has two deletion vectors in one snapshot (DA-7)."""
    UNKNOWN_COLUMN = "unknown-column"
    """A delete file has a delete column that was in no schema of the table."""
    UNKNOWN_SPEC = "unknown-spec"
    """A manifest has a partition spec that the table does not have."""
    BROKEN_REFERENCE = "broken-reference"
    """A branch or tag refers to a snapshot that is not retained."""
    DANGLING_VECTOR = "dangling-vector"
    """A deletion vector has a data file that is not live."""
    DEAD_DELETE = "dead-delete"
    """A position delete file has no live data file."""
    WRONG_TOTAL = "wrong-total"
    """The totals in the summary of a snapshot differ from its manifests. No reader needs them."""
    MISSING_STATISTICS = "missing-statistics"
    """A statistics file does not exist. No reader needs it."""
    MISSING_LOG = "missing-log"
    """An older metadata file of the metadata log does not exist. No reader needs it."""
    ERASED_ROWS = "erased-rows"
    """Something in the table has the scope of an erasure (MT-119)."""
    REPEATED_KEY = "repeated-key"
    """More than one live row of the snapshot has the same key, which the key of a table does not exclude."""
    NOT_CHECKED = "not-checked"
    """This library cannot read the format of the file, or a damaged file prevents the check."""


_WARNINGS: Final = frozenset(
    {
        FindingKind.DANGLING_VECTOR,
        FindingKind.DEAD_DELETE,
        FindingKind.WRONG_TOTAL,
        FindingKind.MISSING_STATISTICS,
        FindingKind.MISSING_LOG,
        FindingKind.REPEATED_KEY,
        FindingKind.NOT_CHECKED,
    }
)


@dataclass(frozen=True, slots=True)
class Flaw:
    """A finding of a check, without advice yet."""

    kind: FindingKind
    location: str
    """The file that is wrong, or that has the wrong statement."""
    what: str
    """One clause with the numbers."""
    number: int | None = None
    """The number of the file in the file_index, if several vectors are at one location."""

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.kind in _WARNINGS else Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFinding:
    """A finding with advice."""

    kind: FindingKind
    severity: Severity
    file: str
    """Location of the file that is wrong, or that has the wrong statement."""
    what: str
    """One clause with the numbers."""
    next_step: str
    """The advice."""
    command: str | None = None
    """A call that carries out the advice."""
    snapshot_ids: tuple[int, ...] = ()
    """The verified snapshots that need the file, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult(HtmlResult):
    """The scope of a verification and its findings, with a text display."""

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
    """Parquet files without page checksums that were read. A changed value in them cannot be detected."""
    repeated_key_count: int | None = None
    """Keys that more than one live row of the snapshot has; None without `keys`, and if a file cannot be read."""
    duration_seconds: float = 0.0
    findings: tuple[VerificationFinding, ...] = ()
    """Errors first."""

    @property
    def is_clean(self) -> bool:
        """Whether no finding has the severity error."""
        return not self.errors

    @property
    def errors(self) -> tuple[VerificationFinding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[VerificationFinding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.WARNING)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-compatible data."""
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
        if self.repeated_key_count is not None:
            lines.append(f"  {_counted(self.repeated_key_count, 'key')} with more than one row")
        if not self.findings:
            return "\n".join([*lines, "no problems found"])
        counts = Counter(f"{each.severity}: {each.kind}" for each in self.findings)
        lines += [f"  {count:,} {kind}" for kind, count in counts.items()]
        for each in self.findings:
            lines += [f"{each.severity}: {each.kind}: {each.file}", f"  {each.what}", f"  {each.next_step}"]
            lines += [f"      {each.command}"] if each.command is not None else []
        return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
