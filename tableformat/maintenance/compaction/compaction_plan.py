"""`CompactionPlan`: groups of files to rewrite, with reasons, costs and savings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypedDict, Unpack

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from tableformat.errors import InvalidArgumentError, UnknownOptionError
from tableformat.filters.predicate import Where, parse_where
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.maintenance.compaction.row_order import OrderedBy, RowOrder, row_order
from tableformat.markup import figures, html
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT, positive_int

DEPTHS: Final = ("merge", "fold")
DELETE_RATIO_THRESHOLD_DEFAULT: Final = 0.3
MIN_INPUT_FILES_DEFAULT: Final = 5
_SMALL_SHARE: Final = 0.75
_LARGE_SHARE: Final = 1.8
_GROUP_TARGETS: Final = 10


class GroupKind(Enum):
    """How the files of a group are processed."""

    DROP = "drop"
    """No row is left: the files are removed from the table unread."""
    FOLD = "fold"
    """One file is rewritten without its deleted rows."""
    MERGE = "merge"
    """The files become fewer files, or the same number of files that do not overlap."""


class CompactionKeywords(TypedDict, total=False):
    """The options of a compaction, as a caller passes them. `CompactionOptions` describes each."""

    where: Where | None
    depth: str
    target_file_size_bytes: int | None
    min_input_files: int
    delete_ratio_threshold: float
    delete_file_threshold: int | None
    max_file_group_size_bytes: int | None
    max_rewritten_bytes: int | None
    rewrite_all: bool
    sort_by: Sequence[str] | None
    z_order: Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """The conditions for rewriting a file. Shares and factors of the target size are Iceberg's."""

    target_file_size_bytes: int
    """Target size of new files; by default `write.target-file-size-bytes`."""
    where: BooleanExpression | None = None
    """Limits the files to files that may hold a matching row; None: all files."""
    depth: str = "merge"
    """"merge": all files. "fold": only files with many deleted rows, each by itself."""
    min_input_files: int = MIN_INPUT_FILES_DEFAULT
    """The number of small files from which they are merged. Fewer files are merged only if they fill a file."""
    delete_ratio_threshold: float = DELETE_RATIO_THRESHOLD_DEFAULT
    """Share of deleted rows from which a file is rewritten."""
    delete_file_threshold: int | None = None
    """Number of pending delete files from which a file is rewritten; None: their number does not matter."""
    max_file_group_size_bytes: int | None = None
    """The most bytes that one group of small files reads; None: ten target sizes. Files that overlap stay together."""
    max_rewritten_bytes: int | None = None
    """The most bytes that all groups read together. The groups that save most for each byte come first."""
    rewrite_all: bool = False
    """Rewrite every file, regardless of its state."""
    order: RowOrder | None = None
    """MT-93: the order of the rows in rewritten files; None: the key's order, or without a key the current order."""

    def __post_init__(self) -> None:
        if self.depth not in DEPTHS:
            raise InvalidArgumentError(f'depth must be "merge" or "fold", not {self.depth!r}.')
        is_number = isinstance(self.delete_ratio_threshold, int | float)
        if not (is_number and 0 < self.delete_ratio_threshold <= 1):
            raise InvalidArgumentError(
                f"delete_ratio_threshold must be above 0 and at most 1, not {self.delete_ratio_threshold!r}."
            )
        for name in (
            "target_file_size_bytes",
            "min_input_files",
            "delete_file_threshold",
            "max_file_group_size_bytes",
            "max_rewritten_bytes",
        ):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidArgumentError(f"{name} must be a whole number above 0, not {value!r}.")

    @classmethod
    def of(cls, view: SnapshotView, **keywords: Unpack[CompactionKeywords]) -> CompactionOptions:
        """The options for one table. Raises InvalidArgumentError for an invalid value, InvalidPredicateError and
        UnknownColumnError for a filter that does not fit the table."""
        known = CompactionKeywords.__annotations__
        for name in keywords:
            if name not in known:
                raise UnknownOptionError(name, known, where="compaction")
        values: dict[str, Any] = dict(keywords)
        if values.get("where") is not None:
            values["where"] = parse_where(values["where"], view.schema)
        if values.get("target_file_size_bytes") is None:
            values["target_file_size_bytes"] = positive_int(
                view.metadata.properties, TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT
            )
        order = row_order(view.schema, sort_by=values.pop("sort_by", None), z_order=values.pop("z_order", None))
        return cls(order=_other_than_the_key(order, view), **values)

    @property
    def small_below_bytes(self) -> int:
        """Files below this size are small."""
        return int(_SMALL_SHARE * self.target_file_size_bytes)

    @property
    def large_above_bytes(self) -> int:
        """Files above this size are split."""
        return int(_LARGE_SHARE * self.target_file_size_bytes)

    @property
    def group_bytes_max(self) -> int:
        return self.max_file_group_size_bytes or _GROUP_TARGETS * self.target_file_size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionGroup:
    """Files of one spec and partition that are replaced together or not at all."""

    kind: GroupKind
    spec_id: int
    partition: tuple[Any, ...]
    tasks: tuple[FileScanTask, ...]
    """The files, each with the deletes of the planned snapshot that apply to it."""
    row_deletes: tuple[DeleteFile, ...]
    """Position delete files and deletion vectors that name only these files. They are removed with them."""
    reasons: tuple[str, ...]
    """The reasons, as text for users."""
    deleted_row_count: int
    """The number of deleted rows; an upper bound if counting them was not worth the reads."""
    output_file_count: int
    """Expected number of new files."""
    saved_bytes: int
    """The read cost that the rewrite saves: for a scan of the group, and for one key lookup in each new file. Opening a
    file counts as `read.split.open-file-cost` bytes."""

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        return tuple(task.data_file for task in self.tasks)

    @property
    def row_count(self) -> int:
        return sum(data.record_count for data in self.data_files)

    @property
    def rewritten_bytes(self) -> int:
        """Bytes of the files that are read; 0 for a group that is dropped."""
        return 0 if self.kind is GroupKind.DROP else sum(data.file_size_bytes for data in self.data_files)

    @property
    def saved_per_byte(self) -> float:
        """MT-42: read cost saved for each rewritten byte; infinite if nothing is rewritten."""
        return self.saved_bytes / self.rewritten_bytes if self.rewritten_bytes else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The groups of one snapshot, in descending order of savings for each byte. Plain data with a text display."""

    snapshot_id: int | None
    sequence_number: int
    """The sequence number of the planned snapshot, which rewritten files carry (CP-7)."""
    options: CompactionOptions
    groups: tuple[CompactionGroup, ...] = ()
    left_out: tuple[CompactionGroup, ...] = field(default=(), repr=False)
    """Groups that exceed `max_rewritten_bytes`."""
    data_file_count: int = 0
    """Data files that were considered."""

    @property
    def rewritten_bytes(self) -> int:
        return sum(group.rewritten_bytes for group in self.groups)

    @property
    def rewritten_data_files_count(self) -> int:
        return sum(len(group.tasks) for group in self.groups)

    @property
    def row_count(self) -> int:
        """Rows in the files that are read, including deleted rows."""
        return sum(group.row_count for group in self.groups if group.kind is not GroupKind.DROP)

    def to_arrow(self) -> pa.Table:
        """A table with one row for each group."""
        groups = self.groups
        return pa.table(
            {
                "kind": pa.array([group.kind.value for group in groups], pa.string()),
                "spec_id": pa.array([group.spec_id for group in groups], pa.int32()),
                "partition": pa.array([_partition_text(group) for group in groups], pa.string()),
                "data_file_count": pa.array([len(group.tasks) for group in groups], pa.int32()),
                "output_file_count": pa.array([group.output_file_count for group in groups], pa.int32()),
                "record_count": pa.array([group.row_count for group in groups], pa.int64()),
                "deleted_row_count": pa.array([group.deleted_row_count for group in groups], pa.int64()),
                "rewritten_bytes": pa.array([group.rewritten_bytes for group in groups], pa.int64()),
                "saved_bytes": pa.array([group.saved_bytes for group in groups], pa.int64()),
                "saved_per_byte": pa.array([group.saved_per_byte for group in groups], pa.float64()),
                "reasons": pa.array([list(group.reasons) for group in groups], pa.list_(pa.string())),
                "file_paths": pa.array(
                    [[data.file_path for data in group.data_files] for group in groups], pa.list_(pa.string())
                ),
            }
        )

    def __str__(self) -> str:
        lines = [
            f"compaction of snapshot {self.snapshot_id}: {len(self.groups)} groups, "
            f"{self.rewritten_data_files_count} of {self.data_file_count} data files, "
            f"{self.rewritten_bytes:,} bytes to rewrite"
        ]
        for group in self.groups:
            where = f" in partition {_partition_text(group)}" if group.partition else ""
            gain = "" if group.kind is GroupKind.DROP else f", saves {group.saved_per_byte:.2f} for each byte rewritten"
            lines.append(f"{group.kind.value} {len(group.tasks)} files into {group.output_file_count}{where}{gain}")
            lines += [f"    {reason}" for reason in group.reasons]
        if self.left_out:
            left = sum(group.rewritten_bytes for group in self.left_out)
            lines.append(f"{len(self.left_out)} more groups of {left:,} bytes do not fit into max_rewritten_bytes")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        told = [
            ("snapshot", self.snapshot_id or "none"),
            ("data files to rewrite", f"{self.rewritten_data_files_count:,} of {self.data_file_count:,}"),
            ("bytes to rewrite", figures.size(self.rewritten_bytes)),
            ("left out, over max_rewritten_bytes", figures.counted(len(self.left_out), "group")),
        ]
        groups = [
            (
                group.kind.value,
                _partition_text(group),
                figures.count(len(group.tasks)),
                figures.count(group.output_file_count),
                figures.size(group.rewritten_bytes),
                "; ".join(group.reasons),
            )
            for group in self.groups
        ]
        columns = ("what", "partition", "files", "into", "bytes", "why")
        return html.fragment(
            "compaction plan",
            html.facts(told),
            html.grid(columns, groups, numbers=("files", "into", "bytes")) if groups else html.quiet("nothing to do"),
        )


def _other_than_the_key(order: RowOrder | None, view: SnapshotView) -> RowOrder | None:
    """MT-93: the order of rewritten rows; None for the order of the key. Raises InvalidArgumentError for any other
    order on a table with a key (FM-6)."""
    schema = view.schema
    key = key_field_ids(schema, view.metadata.properties)
    if order is None or not key:
        return order
    if not order.is_z_order and order.columns == tuple(OrderedBy(field_id) for field_id in key[: len(order.columns)]):
        return None
    names = ", ".join(key_names(schema, key))
    raise InvalidArgumentError(
        f"files of a table with a key are always sorted by the key, '{names}', so that range deletes find their "
        "rows. Omit the order; for another one, use a table without a key."
    )


def _partition_text(group: CompactionGroup) -> str:
    return ", ".join(str(value) for value in group.partition)
