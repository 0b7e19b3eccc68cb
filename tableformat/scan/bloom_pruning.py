"""Skips data files during planning, and row groups of open files, by Bloom filters (FM-27)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tableformat.filters.bound_filter import FALSE, AllOf, AnyOf, BoundFilter, Comparison, Operator
from tableformat.filters.file_pruning import KeptFiles
from tableformat.filters.pruning import residual
from tableformat.metadata.columns.data_columns import DataColumns, Indices
from tableformat.parquet.bloom_filters.filter_bytes import StoredFilter
from tableformat.parquet.bloom_filters.held_filters import HeldFilters
from tableformat.parquet.bloom_filters.probe import Probe
from tableformat.parquet.bloom_filters.stored_form import StoredForm, stored_form
from tableformat.parquet.parquet_file import OpenedFile

_VALUES_MAX: Final = 64
"""Longer lists are not checked: a filter with a false positive rate of 1 % nearly always matches one of their values.
"""
Flags = npt.NDArray[np.bool_]


def without_ruled_out(bound: BoundFilter, files: DataColumns, kept: KeptFiles, held: HeldFilters) -> KeptFiles:
    """FM-27: the files kept by partitions and bounds, without files that the cached Bloom filters exclude.

    Nothing is read: a filter that is not cached excludes nothing.
    """
    if not len(kept.rows) or not _is_asked(bound, held):
        return kept
    may = np.flatnonzero(_may_match(bound, files, kept.rows, held))
    if len(may) == len(kept.rows):
        return kept
    return replace(
        kept,
        rows=kept.rows[may],
        residual_ids=kept.residual_ids[may],
        skipped_by_bloom_filter_count=len(kept.rows) - len(may),
    )


def residual_by_filters(
    bound: BoundFilter, file: OpenedFile, row_group: pq.RowGroupMetaData, held: HeldFilters
) -> BoundFilter:
    """FM-27: the rest of a predicate after the row group's Bloom filters. Filters of a file with one row group are
    cached.

    Raises CorruptFileError for a filter that cannot be read.
    """

    def decide_leaf(leaf: Comparison) -> BoundFilter:
        return leaf if not _has_values(leaf) or _may_be_in(leaf, file, row_group, held) else FALSE

    return residual(bound, decide_leaf)


def _has_values(leaf: Comparison) -> bool:
    return leaf.operator in (Operator.EQUAL, Operator.IN) and len(leaf.values) <= _VALUES_MAX


def _is_asked(bound: BoundFilter, held: HeldFilters) -> bool:
    """Whether a cached filter applies to a part of the predicate."""
    if isinstance(bound, AllOf | AnyOf):
        return any(_is_asked(term, held) for term in bound.terms)
    return isinstance(bound, Comparison) and _has_values(bound) and bool(held.forms_of(bound.field.field_id))


def _may_match(bound: BoundFilter, files: DataColumns, rows: Indices, held: HeldFilters) -> Flags:
    if isinstance(bound, AllOf | AnyOf):
        parts = [_may_match(term, files, rows, held) for term in bound.terms]
        joined: Flags = np.logical_and.reduce(parts) if isinstance(bound, AllOf) else np.logical_or.reduce(parts)
        return joined
    may = np.ones(len(rows), np.bool_)
    if isinstance(bound, Comparison) and _has_values(bound):
        for form in held.forms_of(bound.field.field_id):
            may &= held.may_hold(bound.field.field_id, form, files, rows, _probes(bound, form))
    return may


def _may_be_in(leaf: Comparison, file: OpenedFile, row_group: pq.RowGroupMetaData, held: HeldFilters) -> bool:
    """Whether one of the comparison's values may be in the row group."""
    column = file.leaves.get(leaf.field.field_id)
    if column is None:
        return True
    chunk = row_group.column(column.index)
    if chunk.bloom_filter_offset is None:
        return True
    length = file.metadata.schema.column(column.index).length
    form = stored_form(chunk.physical_type, length, column.arrow_type, leaf.field.field_type)
    if form is None or held.holds(leaf.field.field_id, form, file.location):
        # Planning has already checked cached filters.
        return True
    probes = _probes(leaf, form)
    stored = StoredFilter(file.source, file.location, chunk)
    if not stored.is_understood:
        return True
    blocks = stored.whole()
    if blocks is None:
        return stored.may_hold(probes)
    if file.row_group_count == 1:
        held.hold(leaf.field.field_id, form, file.location, blocks)
    numbers = np.array([len(blocks)])
    return any(probe.is_in(blocks, probe.block_of(numbers)).any() for probe in probes)


def _probes(leaf: Comparison, form: StoredForm) -> list[Probe]:
    stored = (form.bytes_of(value) for value in leaf.values)
    return [Probe.of(each) for each in stored if each is not None]
