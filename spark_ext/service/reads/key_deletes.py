"""The range and equality deletes of a scan, in the form in which executors compare them with rows (decision 65).

Python plans which deletes reach which data file. It reads no data file for that, and no equality delete file: executors
read these. Spans come from manifest entries, or from range delete files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyiceberg.types import NestedField, PrimitiveType

from spark_ext.service.reads.layouts import names_never_moved, names_stayed
from spark_ext.service.wire.span_bytes import span_bytes
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.fragment_range import FragmentRange, RangeDeletes
from tableformat.keys.families import family_of_type
from tableformat.merge_on_read.deleted_positions import MergeContext, equality_ids, spans_of_files
from tableformat.merge_on_read.newer_deletes import NewerDeletes
from tableformat.merge_on_read.span_positions import bound_columns
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask, scan_of
from tableformat.metadata.content_file import PARQUET, DataFile, DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.projection import identity_constants
from tableformat.storage.storage import actual_location


class KeyDeletes:
    """The deletes of one scan. Sets of spans and of delete files are sent once for all data files that have them."""

    def __init__(self, view: SnapshotView, context: MergeContext, tasks: Iterable[RowTask]) -> None:
        self._view = view
        self._context = context
        self._fields = _comparable_fields(view, context)
        wanted = {field_id for task in tasks if isinstance(task, FileScanTask) for field_id in _column_ids(task)}
        self._keys = [self._fields[field_id] for field_id in sorted(wanted & self._fields.keys())]
        self._places = {field.field_id: place for place, field in enumerate(self._keys)}
        self._delete_files_have_names = self._names_are_certain()
        self._span_sets: list[dict[str, Any]] = []
        self._parts: list[bytes] = []
        self._skylines: dict[int, int] = {}
        self._delete_files: list[dict[str, Any]] = []
        self._numbers_of_files: dict[int, int] = {}
        self._equality_sets: list[dict[str, Any]] = []
        self._numbers_of_sets: dict[tuple[int, ...], int] = {}

    @property
    def columns(self) -> list[str]:
        """The names of the delete columns, which are read from data files in addition to those of the query."""
        return [field.name for field in self._keys]

    def are_compared(self, task: RowTask) -> bool:
        """Whether the task has deletes that executors can compare with rows, if its data file is read by field ids.

        Otherwise the rows are found here, by the key columns of the data file: if a delete column was dropped, is in a
        struct, or had another type at the snapshot; if the file may lack a column that its partition knows (DA-6); or
        if the columns of an equality delete file have to be found by the name mapping, or may have had other names.
        """
        if not (isinstance(task, FileScanTask) and has_key_deletes(task)):
            return False
        ids = _column_ids(task)
        if not ids <= self._fields.keys() or self._takes_from_partition(task.data_file, ids):
            return False
        deletes = task.equality_deletes
        return not deletes or (
            self._delete_files_have_names and all(delete.file_format == PARQUET for delete in deletes)
        )

    def add(self, task: RowTask) -> dict[str, Any] | None:
        """The "compared" of a data file in the answer (`ScanFiles.java`); the task must pass `are_compared`.

        None if the spans of range delete files that were not loaded for planning delete every row (RD-10).
        """
        assert isinstance(task, FileScanTask), "other tasks are not compared"
        late, is_covered = spans_of_files(task, self._context.loader)
        if is_covered:
            return None
        return {
            "number": committed_sequence_number(task.data_file),
            "rows": task.data_file.record_count,
            "spans": [self._spans(each) for each in (*task.range_deletes, *late) if len(each)],
            "equality": [self._equality_set(deletes) for deletes in _lists(task.equality_deletes)],
        }

    @property
    def is_used(self) -> bool:
        """Whether a file refers to the sets."""
        return bool(self._span_sets or self._equality_sets)

    def to_json(self, first_part: int) -> dict[str, Any]:
        """The sets that the files refer to. `first_part` is the number of the first of `parts` in the answer."""
        spans = [{**each, "part": first_part + number} for number, each in enumerate(self._span_sets)]
        return {
            "keys": [{"name": field.name, "family": _family(field)} for field in self._keys],
            "span_sets": spans,
            "delete_files": self._delete_files,
            "equality_sets": self._equality_sets,
        }

    @property
    def parts(self) -> Sequence[bytes]:
        """The spans of each set."""
        return self._parts

    def _names_are_certain(self) -> bool:
        names: dict[tuple[str, ...], int] = {(field.name,): field.field_id for field in self._keys}
        schemas = self._view.metadata.schemas
        return (
            self._context.name_mapping is None
            and names_never_moved(schemas, self._view.schema, set(names))
            and names_stayed(schemas, names)
        )

    def _takes_from_partition(self, data: DataFile, ids: set[int]) -> bool:
        known = identity_constants(data, self._view.spec(data.spec_id)).keys() & ids
        return any(field_id not in (data.value_counts or {}) for field_id in known)

    def _spans(self, deletes: RangeDeletes) -> dict[str, int]:
        if isinstance(deletes, FragmentRange):
            skyline = deletes.skyline
            number = self._skylines.get(id(skyline))
            if number is None:
                part = span_bytes(skyline.fragments, is_numbered=True)
                number = self._skylines[id(skyline)] = self._span_set(_span_columns(deletes), part)
            return {"set": number, "begin": deletes.begin, "end": deletes.end, "newer_than": deletes.newer_than}
        number = self._span_set(_span_columns(deletes), span_bytes(deletes, is_numbered=False))
        return {"set": number, "begin": 0, "end": len(deletes), "newer_than": 0}

    def _span_set(self, field_ids: Iterable[int], part: bytes) -> int:
        self._span_sets.append({"keys": [self._places[field_id] for field_id in field_ids]})
        self._parts.append(part)
        return len(self._parts) - 1

    def _equality_set(self, deletes: Sequence[DeleteFile]) -> int:
        files = tuple(self._delete_file(delete) for delete in deletes)
        number = self._numbers_of_sets.get(files)
        if number is None:
            keys = [self._places[field_id] for field_id in sorted(set(equality_ids(deletes[0])))]
            number = self._numbers_of_sets[files] = len(self._equality_sets)
            self._equality_sets.append({"keys": keys, "files": list(files)})
        return number

    def _delete_file(self, delete: DeleteFile) -> int:
        number = self._numbers_of_files.get(id(delete))
        if number is None:
            number = self._numbers_of_files[id(delete)] = len(self._delete_files)
            self._delete_files.append(
                {
                    "path": actual_location(self._view.io, delete.file_path),
                    "size": delete.file_size_bytes,
                    "number": committed_sequence_number(delete),
                    "rows": delete.record_count,
                }
            )
        return number


def without_key_deletes(task: RowTask) -> RowTask:
    """The task with only its deletes by position."""
    scan = replace(scan_of(task), equality_deletes=(), range_deletes=(), range_delete_files=())
    return replace(task, scan=scan) if isinstance(task, NarrowedTask) else scan


def has_key_deletes(task: FileScanTask) -> bool:
    """Whether range or equality deletes may reach rows of the task's file."""
    return bool(task.equality_deletes or task.range_deletes or task.range_delete_files)


def _comparable_fields(view: SnapshotView, context: MergeContext) -> dict[int, NestedField]:
    """The top-level columns of the view whose values executors read in the type in which keys are compared (DA-6)."""
    return {
        field.field_id: field
        for field in view.schema.fields
        if isinstance(field.field_type, PrimitiveType)
        and family_of_type(field.field_type) is not None
        and context.fields[field.field_id].field_type == field.field_type
    }


def _family(field: NestedField) -> str:
    assert isinstance(field.field_type, PrimitiveType), "only primitive columns are compared"
    family = family_of_type(field.field_type)
    assert family is not None, "only columns with an order are compared"
    return family.value


def _column_ids(task: FileScanTask) -> set[int]:
    """The field ids of all columns by which range and equality deletes of the task compare rows."""
    lists = [equality_ids(deletes[0]) for deletes in _lists(task.equality_deletes)]
    lists += [equality_ids(delete) for delete in task.range_delete_files]
    lists += [_span_columns(deletes) for deletes in task.range_deletes if len(deletes)]
    return {field_id for field_ids in lists for field_id in field_ids}


def _span_columns(deletes: RangeDeletes) -> tuple[int, ...]:
    if isinstance(deletes, FragmentRange):
        return deletes.skyline.fragments.key.field_ids[: deletes.skyline.depth]
    return bound_columns(deletes)


def _lists(deletes: Sequence[DeleteFile]) -> list[Sequence[DeleteFile]]:
    """Equality delete files by their set of columns. A shared list is whole: older keys in it delete no row (DA-2)."""
    if isinstance(deletes, NewerDeletes):
        return [deletes.shared.deletes]
    by_columns: Mapping[frozenset[int], list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        by_columns[frozenset(equality_ids(delete))].append(delete)
    return list(by_columns.values())
