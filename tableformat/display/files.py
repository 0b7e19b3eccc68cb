"""Renders data files and delete files of a snapshot, from the Arrow tables of `inspect`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import PrimitiveType
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from tableformat.deletes.rules import is_unpartitioned
from tableformat.display import text
from tableformat.display.grid import QUIET_STYLE, Column, grid
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.partition_text import human_text

ALL_PARTITIONS: Final = "all"
_WIDE: Final = 150
"""Minimum width at which a delete file and its description are on one line."""
_POSITIONAL: Final = ("position", "deletion-vector")
_COLUMNS: Final = (
    "kind",
    "file_path",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "equality_ids",
    "lower_bounds",
    "upper_bounds",
    "referenced_data_file",
    "sequence_number",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A live file."""

    kind: str
    """data, position, equality, range or deletion-vector."""
    path: str
    """The path in the manifest."""
    record_count: int
    """Rows of a data file; positions, keys or spans of a delete file."""
    size_bytes: int
    sequence_number: int | None
    partition: str
    """`country=NO/day=2026-01-31`; empty for a table without partitions."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEntry(FileEntry):
    """A live delete file. `partition` is `all` if the file applies to every partition."""

    columns: tuple[str, ...]
    """The columns of an equality or range delete, in order."""
    bounds: dict[str, tuple[str | None, str | None]]
    """Lower and upper bound of the deleted values, if the manifest has them."""
    referenced_data_file: str | None
    """The only data file that a position delete or deletion vector applies to, if stated."""


def file_entries(files: pa.Table, metadata: TableMetadata) -> list[FileEntry]:
    """Rows of `inspect.data_files()` in the order of the table."""
    return [FileEntry(**_common(row, metadata)) for row in _rows(files)]


def delete_entries(files: pa.Table, metadata: TableMetadata) -> list[DeleteEntry]:
    """Rows of `inspect.delete_files()`, oldest first."""
    columns = _all_columns(metadata)
    entries = [
        DeleteEntry(
            **{**_common(row, metadata), "partition": _scope(row, metadata)},
            columns=tuple(
                columns.get(field_id, (f"field {field_id}", None))[0] for field_id in row["equality_ids"] or ()
            ),
            bounds=_bounds(row, columns),
            referenced_data_file=row["referenced_data_file"],
        )
        for row in _rows(files)
    ]
    return sorted(entries, key=lambda entry: (entry.sequence_number or 0, entry.path))


def render_files(entries: Sequence[FileEntry], location: str) -> RenderableType:
    """One line for each data file; paths are relative to the table's directory."""
    is_partitioned = any(entry.partition for entry in entries)
    columns = [
        Column("rows", is_number=True),
        Column("size", is_number=True),
        Column("sequence", is_number=True),
        *([Column("partition", wraps=True)] if is_partitioned else []),
        Column("data file", wraps=True),
    ]
    rows = []
    for entry in entries:
        figures = [text.count(entry.record_count), text.size(entry.size_bytes), _sequence(entry)]
        partition = [entry.partition] if is_partitioned else []
        rows.append([*figures, *partition, text.relative(entry.path, location)])
    return grid(columns, rows)


@dataclass(frozen=True, slots=True)
class DeleteListing:
    """One line for each delete file with the rows that it deletes. On a narrow screen the path is on its own line."""

    entries: Sequence[DeleteEntry]
    location: str

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        is_wide = options.max_width >= _WIDE
        columns = [
            Column("kind"),
            Column("deletes", is_number=True),
            Column("size", is_number=True),
            Column("sequence", is_number=True),
            Column("what" if is_wide else "what, and delete file", wraps=True),
            *([Column("delete file", wraps=True)] if is_wide else []),
        ]
        yield grid(columns, [self._row(entry, is_wide=is_wide) for entry in self.entries])

    def _row(self, entry: DeleteEntry, *, is_wide: bool) -> list[str | Text]:
        what, path = what_text(entry, self.location), text.relative(entry.path, self.location)
        figures = [entry.kind, text.count(entry.record_count), text.size(entry.size_bytes), _sequence(entry)]
        return [*figures, what, path] if is_wide else [*figures, Text(what).append(f"\n{path}", style=QUIET_STYLE)]


def what_text(entry: DeleteEntry, location: str) -> str:
    """The rows that a delete file deletes: `id1 A..C, id2 0..1`, or rows of a data file."""
    if entry.kind in _POSITIONAL:
        named = entry.referenced_data_file
        return f"rows of {text.relative(named, location)}" if named else "rows of the files that it names"
    told = []
    for name in entry.columns:
        if name not in entry.bounds:
            told.append(name)
            continue
        lower, upper = entry.bounds[name]
        if lower == upper:
            told.append(f"{name} = {lower}")
        else:
            told.append(f"{name} {lower or ''}..{upper or ''}")
    where = "" if entry.partition in ("", ALL_PARTITIONS) else f" in {entry.partition}"
    return ", ".join(told) + where


def _sequence(entry: FileEntry) -> str:
    return "" if entry.sequence_number is None else str(entry.sequence_number)


def _rows(files: pa.Table) -> Iterable[dict[str, Any]]:
    rows: list[dict[str, Any]] = files.select([name for name in _COLUMNS if name in files.column_names]).to_pylist()
    return rows


def _common(row: Mapping[str, Any], metadata: TableMetadata) -> dict[str, Any]:
    return {
        "kind": row["kind"],
        "path": row["file_path"],
        "record_count": row["record_count"],
        "size_bytes": row["file_size_in_bytes"],
        "sequence_number": row["sequence_number"],
        "partition": partition_text(metadata.specs()[row["spec_id"]], row.get("partition")),
    }


def partition_text(spec: PartitionSpec, partition: Mapping[str, Any] | None) -> str:
    """`country=NO/day=2026-01-31` for values by field name; empty without partitions."""
    values = partition or {}
    return "/".join(f"{field.name}={text.cell(values.get(field.name))}" for field in spec.fields)


def _scope(row: Mapping[str, Any], metadata: TableMetadata) -> str:
    """DA-3: a keyed delete under an unpartitioned spec applies to all partitions, a position delete to its own."""
    spec = metadata.specs()[row["spec_id"]]
    if row["kind"] not in _POSITIONAL and is_unpartitioned(spec):
        return ALL_PARTITIONS
    return partition_text(spec, row.get("partition"))


def _all_columns(metadata: TableMetadata) -> dict[int, tuple[str, PrimitiveType | None]]:
    """Name and type of every column in any schema of the table. The name is the newest one."""
    found: dict[int, tuple[str, PrimitiveType | None]] = {}
    current = metadata.schema()
    ordered: list[Schema] = [current, *sorted(metadata.schemas, key=lambda schema: -schema.schema_id)]
    for schema in ordered:
        for field_id in schema.field_ids:
            column_type = schema.find_type(field_id)
            known = column_type if isinstance(column_type, PrimitiveType) else None
            found.setdefault(field_id, (schema.find_column_name(field_id) or f"field {field_id}", known))
    return found


def _bounds(
    row: Mapping[str, Any], columns: Mapping[int, tuple[str, PrimitiveType | None]]
) -> dict[str, tuple[str | None, str | None]]:
    lower, upper = dict(row["lower_bounds"] or ()), dict(row["upper_bounds"] or ())
    bounds = {}
    for field_id in row["equality_ids"] or ():
        name, column_type = columns.get(field_id, (f"field {field_id}", None))
        if column_type is not None and (field_id in lower or field_id in upper):
            bounds[name] = (
                _bound_text(lower.get(field_id), column_type, row["file_path"]),
                _bound_text(upper.get(field_id), column_type, row["file_path"]),
            )
    return bounds


def _bound_text(bound: bytes | None, column_type: PrimitiveType, path: str) -> str | None:
    if bound is None:
        return None
    value = from_bound(bound, column_type, location=path)
    if isinstance(value, str):
        return text.literal(value)
    return human_text(IdentityTransform(), column_type, value)


def path_that_ends(text: str, paths: Sequence[str]) -> str:
    """The path that equals `text`, or the only one that ends with it after a slash. Raises InvalidArgumentError if zero
    or several paths match."""
    if text in paths:
        return text
    found = [path for path in paths if path.endswith("/" + text.lstrip("/"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidArgumentError(f"{text!r} is the end of {len(found)} data files. Pass more of the path.")
    names = {path.rsplit("/", 1)[-1]: path for path in paths}
    near = difflib.get_close_matches(text.rsplit("/", 1)[-1], names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else " `tableformat files` lists them."
    raise InvalidArgumentError(f"{text!r} is not a data file of this snapshot.{hint}")
