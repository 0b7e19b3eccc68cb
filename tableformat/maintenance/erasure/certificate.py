"""The certificate of an erasure: its scope, what was done, and what could not be reached."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Final

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError
from tableformat.markup.results import HtmlResult

VERSION: Final = 1
NOT_PROVED: Final = (
    "copies outside of the table: backups, replicas, clones, exports, caches and logs of readers",
    "former versions of files that the store keeps (object versioning, snapshots of a file system)",
    "blocks of removed files that a disk has not overwritten yet",
    "other columns: they leave with their row, and copies of its values in other rows are not looked for",
)
"""What reading the table cannot prove, for every erasure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFile:
    """A file that was written again without the scope, or removed."""

    location: str
    """The file that was removed."""
    new_location: str | None = None
    """The file in its place; None if nothing was left."""
    digest: str | None = None
    """SHA-256 of the new file, in hexadecimal."""
    erased_rows_count: int = 0
    """Rows of a data file that were erased, whether a snapshot had deleted them or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReached:
    """A place that has the scope, or may have it, after the erasure."""

    location: str
    """A file, or an entry of the table metadata."""
    reason: str
    """The reason, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableErasure:
    """The erasure in one table."""

    table: str
    table_uuid: str
    scope: dict[str, Any]
    """The filter as JSON, with field ids. It has the identifier."""
    metadata_location: str
    """The metadata file that was proved."""
    snapshots_count: int = 0
    """Retained snapshots, all of which were searched."""
    rewritten_snapshots_count: int = 0
    erased_rows_count: int = 0
    """Rows in data files, each counted once, whether a snapshot had deleted them or not."""
    rewritten_data_files: tuple[ErasedFile, ...] = ()
    rewritten_delete_files: tuple[ErasedFile, ...] = ()
    removed_files: tuple[str, ...] = ()
    """All files that were removed, including metadata files and the files before a rewrite."""
    removed_statistics_count: int = 0
    changed_entries: tuple[str, ...] = ()
    """Names of summary entries and table properties that were changed or left out."""
    read_data_files_count: int = 0
    """Data files that were read again afterwards."""
    read_delete_files_count: int = 0
    read_metadata_files_count: int = 0
    """Metadata files, manifest lists and manifests that were read again afterwards."""
    not_reached: tuple[NotReached, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCertificate(HtmlResult):
    """The result of an erasure; with `dry_run` its plan. `to_json` is the document to keep.

    The certificate has the identifier, because it cannot be verified without. Keep it where that is allowed.
    """

    tables: tuple[TableErasure, ...] = ()
    issued_at: str = ""
    """ISO 8601, in UTC."""
    not_proved: tuple[str, ...] = NOT_PROVED
    """What reading the tables cannot prove."""
    duration_seconds: float = 0.0
    dry_run: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the tables has the scope any more. False for a dry run."""
        return not self.dry_run and not any(each.not_reached for each in self.tables)

    @property
    def erased_rows_count(self) -> int:
        return sum(each.erased_rows_count for each in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON-compatible data."""
        document = dataclasses.asdict(self)
        return {"version": VERSION, "is_complete": self.is_complete, **document}

    def to_json(self) -> str:
        """The certificate as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ErasureCertificate:
        """Raises InvalidArgumentError for text that is not a certificate of this version."""
        try:
            document = json.loads(text)
            if document["version"] != VERSION:
                raise InvalidArgumentError(
                    f"the certificate has version {shown(document['version'])}, and this library reads {VERSION}."
                )
            return cls(
                tables=tuple(_table(each) for each in document["tables"]),
                issued_at=document["issued_at"],
                not_proved=tuple(document["not_proved"]),
                duration_seconds=document["duration_seconds"],
                dry_run=document["dry_run"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidArgumentError(f"the text is no certificate of an erasure: {error!r}.") from error


def _table(document: dict[str, Any]) -> TableErasure:
    files = {name: tuple(ErasedFile(**each) for each in document[name]) for name in _FILES}
    return TableErasure(
        **{
            **document,
            **files,
            "removed_files": tuple(document["removed_files"]),
            "changed_entries": tuple(document["changed_entries"]),
            "not_reached": tuple(NotReached(**each) for each in document["not_reached"]),
        }
    )


_FILES: Final = ("rewritten_data_files", "rewritten_delete_files")
