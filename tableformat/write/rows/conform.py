"""Conforms rows to the table's schema: columns by name, types exactly, and a reason for every row that does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError, RowsRefusedError, SchemaMismatchError, UncoveredRowsError
from tableformat.metadata.once_per_schema import once_per_schema
from tableformat.write.rows.checks import RowTest, misfits_of
from tableformat.write.rows.column_casts import ArrayCast, Misfits, Positions
from tableformat.write.rows.held_batches import HeldBatches
from tableformat.write.rows.nested_casts import default_column, field_cast, matched_columns
from tableformat.write.rows.refused_groups import SpoiledGroups, SpoiledGroupsCollector

REPORTED_ROWS: Final = 1_000
"""Number of rows that a RowsRefusedError contains; its message has the total."""
_TAGS_MAX: Final = 3
ON_REFUSED: Final = ("fail", "divert")
REPORT_SCHEMA: Final = pa.schema(
    [pa.field("row_index", pa.int64()), pa.field("column", pa.large_string()), pa.field("reason", pa.large_string())]
)


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """Rows of one batch that do not fit, each with the first column, in the table's order, that is the cause."""

    positions: Positions
    """Ascending positions in the batch."""
    columns: pa.Array
    reasons: pa.Array
    uncovered: bool
    """True if all of them are only refused because they lie outside of all range partitions (RP-5)."""
    retired_tags: tuple[str, ...] = ()
    """The tags of the retired ranges that contain some of them (RP-30)."""


@dataclass(frozen=True, slots=True)
class ConformedBatch:
    """The rows of one batch that fit, in the table's schema, and the refused rows."""

    batch: pa.RecordBatch
    refused: RefusedRows | None
    unfit: pa.RecordBatch | None = None
    """The refused rows in the table's schema; null in place of values that do not fit."""


@once_per_schema
def table_arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema for writing rows: Iceberg's field ids on every field, 64-bit offsets."""
    return schema_to_pyarrow(schema)


class Conformer:
    """Conforms batches of one Arrow schema to a table's schema. Decisions that depend only on schemas are made once."""

    def __init__(self, source: pa.Schema, schema: Schema, checks: Sequence[RowTest] = ()) -> None:
        """Raises UnknownColumnError or SchemaMismatchError if no row of such a schema can be written."""
        self.source = source
        self._checks = checks
        self.target = table_arrow_schema(schema)
        self._columns = matched_columns(list(source), schema.fields, "")
        self._casts = self._all_casts()

    def _all_casts(self) -> list[ArrayCast | None]:
        """Raises one SchemaMismatchError for all affected columns."""
        casts: list[ArrayCast | None] = []
        refused: list[str] = []
        for i, (index, field) in enumerate(self._columns):
            try:
                given = None if index is None else self.source.field(index).type
                casts.append(None if given is None else field_cast(given, field, self.target.field(i), field.name))
            except SchemaMismatchError as error:
                refused.append(str(error))
        if refused:
            raise SchemaMismatchError(" ".join(refused))
        return casts

    def conform(self, batch: pa.RecordBatch) -> ConformedBatch:
        arrays: list[pa.Array] = []
        misfits: list[Misfits] = []
        for i, (index, field) in enumerate(self._columns):
            cast = self._casts[i]
            if index is None or cast is None:
                arrays.append(default_column(field, self.target.field(i), batch.num_rows))
                continue
            result = cast(batch.column(index), field.name)
            arrays.append(result.array)
            misfits += result.misfits
        conformed = pa.RecordBatch.from_arrays(arrays, schema=self.target)
        misfits += misfits_of(self._checks, conformed)
        if not misfits:
            return ConformedBatch(conformed, None)
        refused = _first_of_each_row(misfits)
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        kept[refused.positions] = False
        return ConformedBatch(conformed.filter(pa.array(kept)), refused, conformed.take(pa.array(refused.positions)))


def conform(batch: pa.RecordBatch, schema: Schema) -> ConformedBatch:
    """One batch in the table's schema. For many batches of one schema, keep a Conformer."""
    return Conformer(batch.schema, schema).conform(batch)


class ConformedRows:
    """A stream of batches in the table's schema, read once.

    With `on_refused="fail"`, the first row that does not fit ends the stream. The rest of the input is only counted,
    and RowsRefusedError has the number of rows that do not fit, and the first of them.

    None does the same, for operations without this option: the error does not mention it.

    With "divert", such rows are left out, kept in memory and returned by `refused`. With `whole_groups`, names of
    columns, all rows with the same values in these columns are left out too (CP-24). Then no row is returned before the
    last one has been read.
    """

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        schema: Schema,
        *,
        on_refused: str | None = None,
        checks: Sequence[RowTest] = (),
        whole_groups: Sequence[str] = (),
        numbered_by: str | None = None,
    ) -> None:
        """`checks`: constraints of the table that rows must not violate (CK-2), and checks of the operation.

        `numbered_by`: an additional int64 column with the index of each row in the caller's input. It is needed if the
        reader omits some of that input.
        """
        if on_refused is not None and on_refused not in ON_REFUSED:
            raise InvalidArgumentError(f"on_refused must be 'fail' or 'divert', not {on_refused!r}.")
        self._reader = reader
        self._schema = schema
        self._checks = tuple(checks)
        self._whole_groups = tuple(whole_groups)
        self._spoiled: pa.Table | None = None
        self._numbered_by = numbered_by
        self.ranges_note = ""
        """A sentence for the error about rows outside of the range partitions."""
        self._conformer = Conformer(_without(reader.schema, numbered_by), schema, checks)
        self._can_divert = on_refused is not None
        self._diverts = on_refused == "divert"
        self._diverted: list[pa.RecordBatch] = []

    @property
    def schema(self) -> pa.Schema:
        return self._conformer.target

    @property
    def refused(self) -> pa.Table | None:
        """Diverted rows as the caller passed them, with `_row_index`, `_refused_column` and `_refused_reason`; None if
        no row was diverted.

        Complete after the stream is exhausted.
        """
        return pa.Table.from_batches(self._diverted) if self._diverted else None

    @property
    def spoiled_groups(self) -> pa.Table | None:
        """The values of `whole_groups` in refused rows; None if no row was refused."""
        return self._spoiled

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._diverts and self._whole_groups:
            with HeldBatches(self._reader.schema) as held:
                yield from self._fitting(held, self._conformer_of_whole_groups(held))
        else:
            yield from self._fitting(self._reader, self._conformer)

    def _conformer_of_whole_groups(self, held: HeldBatches) -> Conformer:
        """CP-24: reads all rows. Returns a conformer that also refuses all rows of groups with a refused row."""
        collector = SpoiledGroupsCollector(self.schema, self._whole_groups)
        for batch in self._reader:
            held.append(batch)
            unfit = self._conformer.conform(self._row_columns(batch)).unfit
            if unfit is not None:
                collector.observe(unfit)
        if not len(collector.values):
            return self._conformer
        self._spoiled = collector.values
        source = _without(self._reader.schema, self._numbered_by)
        return Conformer(source, self._schema, (*self._checks, SpoiledGroups(self._spoiled)))

    def _fitting(self, batches: Iterable[pa.RecordBatch], conformer: Conformer) -> Iterator[pa.RecordBatch]:
        first_row = 0
        for batch in batches:
            rows = self._row_columns(batch)
            conformed = conformer.conform(rows)
            if conformed.refused is not None:
                indexes = self._indexes(batch, conformed.refused, first_row)
                if not self._diverts:
                    raise self._refusal(conformed, indexes, first_row + batch.num_rows)
                self._diverted.append(_diverted(rows, conformed.refused, indexes))
            first_row += batch.num_rows
            if conformed.batch.num_rows:
                yield conformed.batch

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def _row_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without the column of row indexes."""
        return batch if self._numbered_by is None else batch.drop_columns([self._numbered_by])

    def _indexes(self, batch: pa.RecordBatch, refused: RefusedRows, first_row: int) -> npt.NDArray[np.int64]:
        """The indexes of the refused rows in the caller's input."""
        if self._numbered_by is None:
            return refused.positions + first_row
        numbers: npt.NDArray[np.int64] = batch.column(self._numbered_by).to_numpy()
        return numbers[refused.positions]

    def _refusal(self, first: ConformedBatch, indexes: npt.NDArray[np.int64], next_row: int) -> RowsRefusedError:
        """The error for the refused rows. Counts the rest of the input."""
        assert first.refused is not None
        refused, is_uncovered = [(first, indexes)], first.refused.uncovered
        total = reported = len(first.refused.positions)
        tags = dict.fromkeys(first.refused.retired_tags)
        for batch in self._reader:
            conformed = self._conformer.conform(self._row_columns(batch))
            if conformed.refused is not None:
                total += len(conformed.refused.positions)
                is_uncovered &= conformed.refused.uncovered
                tags |= dict.fromkeys(conformed.refused.retired_tags)
                if reported < REPORTED_ROWS:
                    refused.append((conformed, self._indexes(batch, conformed.refused, next_row)))
                    reported += len(conformed.refused.positions)
            next_row += batch.num_rows
        report = pa.Table.from_batches([_report(each, at, with_rows=is_uncovered) for each, at in refused])
        advice = _advice([*tags], uncovered=is_uncovered, can_divert=self._can_divert)
        report = report.slice(0, REPORTED_ROWS)
        return _error(report, total, next_row, advice, uncovered=is_uncovered, ranges_note=self.ranges_note)


def _advice(retired_tags: Sequence[str], *, uncovered: bool, can_divert: bool) -> str:
    """What the caller can do about refused rows, as the end of a sentence."""
    advice = []
    if uncovered and retired_tags:
        calls = " and ".join(f"range_partitions.restore({tag!r})" for tag in retired_tags[:_TAGS_MAX])
        advice.append(f"{calls} restores the retired range; range_partitions.add(lower, upper) adds other ranges")
    elif uncovered:
        advice.append("range_partitions.add(lower, upper) adds a range")
    if can_divert:
        advice.append("on_refused='divert' writes the other rows")
    return f"; {', '.join(advice)}" if advice else ""


def _error(
    report: pa.Table, refused_count: int, row_count: int, advice: str, *, uncovered: bool, ranges_note: str
) -> RowsRefusedError:
    counted = f"{refused_count:,} of {row_count:,} rows"
    row, column, reason = (report.column(name)[0].as_py() for name in REPORT_SCHEMA.names)
    if uncovered:
        return UncoveredRowsError(
            f"{counted} are outside all range partitions, first row {row}: {reason}. Nothing was written. The "
            f"attribute `refused` of this error lists the rows{advice}." + (ranges_note and f" {ranges_note}"),
            report,
            refused_count,
        )
    return RowsRefusedError(
        f"{counted} do not fit the table, first row {row}: column {column!r}: {reason}. Nothing was written. The "
        f"attribute `refused` of this error lists the rows{advice}.",
        report,
        refused_count,
    )


def _first_of_each_row(misfits: Sequence[Misfits]) -> RefusedRows:
    positions = np.concatenate([found.positions for found in misfits])
    # np.unique returns the first occurrence, and misfits are in the order of the table's columns.
    rows, first = np.unique(positions, return_index=True)
    chosen = pa.array(first)
    columns = pa.concat_arrays([found.columns for found in misfits]).take(chosen)
    reasons = pa.concat_arrays([found.reasons for found in misfits]).take(chosen)
    tags = dict.fromkeys(tag for found in misfits for tag in found.retired_tags)
    return RefusedRows(rows, columns, reasons, all(found.uncovered for found in misfits), tuple(tags))


def _without(schema: pa.Schema, name: str | None) -> pa.Schema:
    return schema if name is None else schema.remove(schema.get_field_index(name))


def _report(conformed: ConformedBatch, indexes: npt.NDArray[np.int64], *, with_rows: bool) -> pa.RecordBatch:
    refused = conformed.refused
    assert refused is not None
    report = pa.RecordBatch.from_arrays([pa.array(indexes), refused.columns, refused.reasons], schema=REPORT_SCHEMA)
    if not with_rows:
        return report
    assert conformed.unfit is not None
    return report.append_column("row", conformed.unfit.to_struct_array())


def _diverted(batch: pa.RecordBatch, refused: RefusedRows, indexes: npt.NDArray[np.int64]) -> pa.RecordBatch:
    rows = batch.take(pa.array(refused.positions))
    return pa.RecordBatch.from_arrays(
        [*rows.columns, pa.array(indexes), refused.columns, refused.reasons],
        names=[*batch.schema.names, "_row_index", "_refused_column", "_refused_reason"],
    )
