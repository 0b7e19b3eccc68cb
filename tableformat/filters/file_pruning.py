"""Finds the data files that a filter rules out, and the residual filter of each other file.

Every comparison of the filter is evaluated on all files at once. So each file has a state for each comparison: ruled
out, always true, or open. Files with the same states have the same residual, which is computed once.

    files                 id >= 5      day = 3 (partition)     residual of id >= 5 AND day = 3
    a, b                  open         always true             id >= 5
    c                     ruled out    always true             none: c is not read
    d                     always true  ruled out               none
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, Comparison, comparisons
from tableformat.filters.column_pruning import Question, StatisticsColumns, may_match, must_match, statistics_columns
from tableformat.filters.file_statistics import column_statistics
from tableformat.filters.key_summaries import summary_of_column
from tableformat.filters.partition_pruning import PartitionPruning
from tableformat.filters.pruning import decide, residual
from tableformat.metadata.columns.data_columns import DataColumns, Indices
from tableformat.metadata.columns.data_file_rows import data_files
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestFile

States: TypeAlias = npt.NDArray[np.int8]

_OPEN: Final = 0
_ALWAYS: Final = 1
_RULED_OUT: Final = 2
_DECIDED: Final[Mapping[int, BoundFilter]] = {_ALWAYS: TRUE, _RULED_OUT: FALSE}
_CODES_MAX: Final = 1 << 40
_TABLE_MAX: Final = 1 << 12
"""The number of codes up to which a lookup table is used instead of a sort."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptFiles:
    """The files that may have matching rows."""

    rows: Indices
    """Indexes of the files, ascending."""
    residual_ids: Indices
    """For each file the index of its residual."""
    residuals: tuple[BoundFilter, ...]
    """The filter itself if nothing in it is decided."""
    skipped_by_partition_count: int
    skipped_by_bounds_count: int
    skipped_by_bloom_filter_count: int = 0


class FilePruning:
    """One filter on the files of one table."""

    def __init__(self, bound: BoundFilter, specs: Mapping[int, PartitionSpec], schema: Schema) -> None:
        self._bound = bound
        self._specs = specs
        self._schema = schema
        self._leaves = list({id(leaf): leaf for leaf in comparisons(bound)}.values())
        self._questions = [Question.of(leaf) for leaf in self._leaves]
        self._by_spec: dict[int, PartitionPruning] = {}

    def manifest_may_match(self, manifest: ManifestFile) -> bool:
        """Whether a row may match according to the summaries of partitions and key columns."""
        if self._bound is TRUE:
            return True
        if self._bound is FALSE or not self._of_spec(manifest.partition_spec_id).manifest_may_match(manifest):
            return False
        if not manifest.columns:
            return True
        by_key = residual(self._bound, lambda leaf: decide(leaf, summary_of_column(manifest, leaf.field)))
        return by_key is not FALSE

    def may_hold_match(self, data: DataFile) -> bool:
        """Whether a row may match according to the partition and bounds of a file."""
        return residual_by_bounds(self._of_spec(data.spec_id).residual_in(data.partition), data) is not FALSE

    def keep(self, files: DataColumns) -> KeptFiles:
        """The files that may have matching rows, with the residual filter for their rows."""
        if self._bound is TRUE:
            rows = np.arange(len(files))
            return KeptFiles(rows, np.zeros(len(files), np.int64), (TRUE,), 0, 0)
        by_partition = self._states_of_partitions(files)[:, files.partition_ids]
        in_partition = _Residuals(self._bound, self._leaves, by_partition)
        has_partition = ~in_partition.is_false
        states, is_odd = self._states_by_bounds(files, by_partition)
        left = _Residuals(self._bound, self._leaves, states)
        is_kept = has_partition & ~left.is_false & (files.record_counts != 0)
        ids, residuals = left.ids.copy(), list(left.residuals)
        for row in np.flatnonzero(has_partition & is_odd).tolist():
            (data,) = data_files(files, np.array([row]))
            found = residual_by_bounds(in_partition.residuals[in_partition.ids[row]], data)
            is_kept[row] = found is not FALSE and data.record_count != 0
            ids[row] = len(residuals)
            residuals.append(found)
        kept = np.flatnonzero(is_kept)
        by_partition_count = int(len(files) - np.count_nonzero(has_partition))
        return KeptFiles(
            kept, ids[kept], tuple(residuals), by_partition_count, len(files) - by_partition_count - len(kept)
        )

    def _states_of_partitions(self, files: DataColumns) -> States:
        """One row for each comparison, one column for each distinct partition."""
        states = np.zeros((len(self._leaves), len(files.partitions)), np.int8)
        for column, (spec_id, partition) in enumerate(files.partitions):
            pruning = self._of_spec(spec_id)
            if pruning.is_useful:
                states[:, column] = [_state(pruning.decided_in(leaf, partition)) for leaf in self._leaves]
        return states

    def _states_by_bounds(self, files: DataColumns, by_partition: States) -> tuple[States, npt.NDArray[np.bool_]]:
        """Evaluates the comparisons that partitions leave open on the bounds. Also returns the files whose bounds have
        to be evaluated one by one."""
        states = by_partition.copy()
        is_odd = np.zeros(len(files), np.bool_)
        known: dict[int, StatisticsColumns | None] = {}
        for row, question in enumerate(self._questions):
            field = question.leaf.field
            field_id = field.field_id
            if field_id not in known:
                known[field_id] = statistics_columns(files, field_id, field.field_type)
            statistics = known[field_id]
            is_open = states[row] == _OPEN
            if statistics is None:
                is_odd |= is_open
                continue
            is_odd |= is_open & statistics.is_odd
            states[row, is_open & must_match(question, statistics)] = _ALWAYS
            states[row, is_open & ~may_match(question, statistics)] = _RULED_OUT
        return states, is_odd

    def _of_spec(self, spec_id: int) -> PartitionPruning:
        if spec_id not in self._by_spec:
            self._by_spec[spec_id] = PartitionPruning(self._bound, self._specs[spec_id], self._schema)
        return self._by_spec[spec_id]


def residual_by_bounds(
    bound: BoundFilter, file: DataFile | DeleteFile, among: Sequence[int] | None = None
) -> BoundFilter:
    """The residual filter for the rows of one file, from the bounds of its columns, or of the columns in `among`."""

    def decide_leaf(leaf: Comparison) -> BoundFilter:
        if among is not None and leaf.field.field_id not in among:
            return leaf
        return decide(leaf, column_statistics(file, leaf.field.field_id, leaf.field.field_type))

    return residual(bound, decide_leaf)


class _Residuals:
    """The residual of each file, from the states of the comparisons."""

    def __init__(self, bound: BoundFilter, leaves: list[Comparison], states: States) -> None:
        self.ids, first = _distinct(states)
        self.residuals = [residual(bound, _decided(leaves, states[:, column])) for column in first.tolist()]
        false = np.array([found is FALSE for found in self.residuals], np.bool_)
        self.is_false: npt.NDArray[np.bool_] = false[self.ids]


def _decided(leaves: list[Comparison], states: States) -> Callable[[Comparison], BoundFilter]:
    by_leaf = {id(leaf): _DECIDED.get(state) for leaf, state in zip(leaves, states.tolist(), strict=True)}

    def decide_leaf(leaf: Comparison) -> BoundFilter:
        return by_leaf[id(leaf)] or leaf

    return decide_leaf


def _distinct(states: States) -> tuple[Indices, Indices]:
    """For each column the index of its content among the distinct contents, and the first column of each."""
    count = states.shape[1]
    codes = np.zeros(count, np.int64)
    size = 1
    for row in states:
        if size > _CODES_MAX:
            codes, first = _numbered(codes, size)
            size = len(first)
        codes = codes * 3 + row
        size *= 3
    return _numbered(codes, size)


def _numbered(codes: Indices, size: int) -> tuple[Indices, Indices]:
    """For each code, all below `size`, its index among the distinct codes, and the first position of each."""
    if size > _TABLE_MAX:
        _, first, ids = np.unique(codes, return_index=True, return_inverse=True)
        return ids.astype(np.int64), first.astype(np.int64)
    first_of = np.full(size, -1, np.int64)
    # If a code has several positions, the last assignment remains.
    first_of[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    present = np.flatnonzero(first_of >= 0)
    id_of = np.empty(size, np.int64)
    id_of[present] = np.arange(len(present))
    return id_of[codes], first_of[present]


def _state(decided: BoundFilter) -> int:
    return _ALWAYS if decided is TRUE else _RULED_OUT if decided is FALSE else _OPEN
