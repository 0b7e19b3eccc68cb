"""Checks commits against range partitions: rows are committed only inside existing ranges, and ranges change with the
snapshot.

The table property is one text, so a commit that changes it states the text that it was made from. Catalogs in this
process compare this text. Catalog servers cannot, so there every change of the property makes a snapshot, whose
sequence number only one commit can take (RP-8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
)

from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import CommitConflictError, InvalidArgumentError, UncoveredRowsError
from tableformat.metadata.content_file import DataFile
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.alteration import united
from tableformat.range_partitions.definition import ranges_text
from tableformat.range_partitions.files import steps_of_files, uncovered_files
from tableformat.range_partitions.property_text import range_partitions_of, to_property
from tableformat.range_partitions.retired import retired_in, retired_note
from tableformat.range_partitions.summary import COVERAGE_BEFORE, COVERAGE_DROPPED


@dataclass(frozen=True, slots=True)
class CoverageChange:
    """The change that a commit makes to the property."""

    before: str | None
    after: str | None
    needs_snapshot: bool = True
    """Make a snapshot even without files: rows that were accepted before are rejected from then on (RP-8)."""
    dropped: str | None = None
    """The ranges whose rows are deleted by the commit, as JSON."""

    @property
    def summary(self) -> dict[str, str]:
        dropped = {} if self.dropped is None else {COVERAGE_DROPPED: self.dropped}
        return {COVERAGE_BEFORE: self.before or "", **dropped}

    @property
    def updates(self) -> tuple[TableUpdate, ...]:
        return property_updates(self.after)


def property_updates(text: str | None) -> tuple[TableUpdate, ...]:
    """The updates that set the property, or remove it if `text` is None."""
    if text is None:
        return (RemovePropertiesUpdate(removals=[RANGE_PARTITIONS]),)
    return (SetPropertiesUpdate(updates={RANGE_PARTITIONS: text}),)


def coverage_is(text: str | None, catalog: Catalog) -> tuple[TableRequirement, ...]:
    """RP-8: the requirement that the property still has that text, for catalogs that check requirements in this
    process."""
    if is_rest(catalog):
        return ()
    # PyIceberg's union of requirements lists only requirements that a catalog server knows.
    return (cast(TableRequirement, _CoverageIs(text=text)),)


class _CoverageIs(ValidatableTableRequirement):
    """Checked by catalogs that check requirements in this process."""

    type: str = "assert-range-partitions"
    text: str | None

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # as PyIceberg's own
        """Raises CommitFailedException if the range partitions were changed concurrently."""
        if base_metadata is not None and base_metadata.properties.get(RANGE_PARTITIONS) != self.text:
            raise CommitFailedException("Requirement failed: the range partitions were changed concurrently")


def coverage_for(
    added: Sequence[DataFile],
    metadata: TableMetadata,
    *,
    held_against: str | None,
    unchecked: frozenset[str],
    table: str,
) -> CoverageChange | None:
    """RP-6: whether the added files may be committed on this metadata, and the ranges that are added on demand for them
    (RP-9).

    `held_against` is the property against which rows were checked individually; `unchecked` names files whose rows were
    not checked. Raises CommitConflictError if rows may lie outside the current ranges, UncoveredRowsError for unchecked
    files.
    """
    text = metadata.properties.get(RANGE_PARTITIONS)
    defined = range_partitions_of(metadata.properties, metadata.schema())
    if defined is None or defined.takes_every_row:
        return None
    is_same = text == held_against
    asked = [data for data in added if not is_same or data.file_path in unchecked or defined.on_demand is not None]
    outside = uncovered_files(defined, asked)
    if not outside:
        return None
    if defined.on_demand is not None:
        missing, outside = steps_of_files(defined, outside)
        if len(missing) > defined.on_demand.max_new_per_commit:
            raise InvalidArgumentError(
                f"the rows require {len(missing):,} new range partitions of {table}, but one commit adds at most "
                f"{defined.on_demand.max_new_per_commit:,} (max_new_per_commit). Nothing was changed."
            )
        if not outside:
            return CoverageChange(text, to_property(united(defined, missing)))
    exists = ranges_text(defined.key, defined.bounds) or "nothing"
    exists += retired_note(retired_in(metadata.properties, metadata.schema()), defined.key, outside)
    some = ", ".join(data.file_path for data in outside[:3])
    if is_same:
        from_elsewhere = [data for data in outside if data.file_path in unchecked]
        if not from_elsewhere:
            return None
        raise UncoveredRowsError(
            f"{len(outside)} staged data files may hold rows that no range partition of {table} covers ({some}). "
            f"They were staged by another writer, or before the ranges changed. Existing ranges: {exists}. Nothing "
            "was changed. Add the missing range or leave out these rows; a file must not cross a range boundary.",
            pa.table({}),
        )
    raise CommitConflictError(
        f"the range partitions of {table} changed while rows were written, so rows of {some} may lie outside the "
        f"existing ranges: {exists}. Nothing was changed. Run the operation again."
    )
