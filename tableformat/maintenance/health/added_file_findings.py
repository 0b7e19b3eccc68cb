"""Health findings about data files that `add_files` has added (MT-102)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import UTC_ALIASES

from tableformat.errors import CorruptFileError
from tableformat.maintenance.health.health import Finding
from tableformat.markup.figures import counted
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.own_names import origins_in
from tableformat.metadata.owned_files import PATH_PROPERTIES
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.parquet_file import unreadable_as_corrupt
from tableformat.storage.location import is_below
from tableformat.storage.side_by_side import read_side_by_side
from tableformat.storage.storage import open_input

FOOTERS_MAX: Final = 200
"""The most footers that one call reads, which takes some seconds in an object store."""
_FOOTER_BYTES: Final = 16 * 1024
_COLUMNS_MAX: Final = 3
_OTHER_LISTS: Final = (pa.ListViewType, pa.LargeListViewType, pa.FixedSizeListType)

Columns = dict[str, str]
"""Arrow types by the paths of columns."""


def added_file_findings(view: SnapshotView, files: Collection[DataFile]) -> Iterator[Finding]:
    """MT-102: added files whose Arrow schema has types that PyIceberg or Polars cannot combine with other files.

    Reads at most FOOTERS_MAX footers, and no footers of files that a writer of the table has written.
    """
    added = _added_files(view, files)
    looked_at = _some_of_each_commit(added)
    found = [columns for columns in _stored_types(view.io, looked_at) if columns]
    if not found:
        return
    names = {path: kind for columns in found for path, kind in columns.items()}
    told = [f"{path!r} as {kind}" for path, kind in sorted(names.items())[:_COLUMNS_MAX]]
    more = [f"{len(names) - _COLUMNS_MAX:,} more columns"] if len(names) > _COLUMNS_MAX else []
    is_part = len(looked_at) < len(added)
    part = f" of the {len(looked_at):,} opened, of {len(added):,} added," if is_part else ""
    yield Finding(
        name="added-arrow-types",
        what=(
            f"{counted(len(found), 'added data file')}{part} with an Arrow schema that PyIceberg or Polars cannot "
            f"combine with other files: {', '.join(told + more)}"
        ),
        command="table.maintenance.compact(rewrite_all=True)",
    )


def _added_files(view: SnapshotView, files: Collection[DataFile]) -> list[DataFile]:
    """LK-31: the files that were added. Their names mark them as added, or they are outside the directories of the
    table."""
    metadata = view.metadata
    stated = (metadata.properties.get(name) for name in PATH_PROPERTIES)
    roots = [metadata.location, *(root for root in stated if root)]
    return [
        file
        for file in files
        if origins_in([file.file_path]) or not any(is_below(file.file_path, root) for root in roots)
    ]


def _some_of_each_commit(files: Sequence[DataFile]) -> list[DataFile]:
    """At most FOOTERS_MAX files from as many commits as possible, because files that one commit added are mostly
    alike."""
    if len(files) <= FOOTERS_MAX:
        return list(files)
    seen: Counter[int | None] = Counter()
    ranked: list[tuple[int, int]] = []
    for file in files:
        ranked.append((seen[file.sequence_number], len(ranked)))
        seen[file.sequence_number] += 1
    return [files[index] for _, index in sorted(ranked)[:FOOTERS_MAX]]


def _stored_types(io: FileIO, files: Sequence[DataFile]) -> list[Columns | None]:
    """The types of each file; None for an unreadable file, which `verify` reports."""

    def read(file: DataFile) -> Columns | None:
        try:
            with open_input(io, file.file_path) as stream, unreadable_as_corrupt(file.file_path):
                return unshared_types(pq.read_schema(stream))
        except CorruptFileError:
            return None

    return read_side_by_side(read, files, lambda file: file.file_path, lambda _: _FOOTER_BYTES)


def unshared_types(schema: pa.Schema) -> Columns:
    """The columns whose Arrow type PyIceberg or Polars passes on unchanged or does not know, by their paths."""
    return {path: kind for field in schema for path, kind in _unshared(field.name, field.type)}


def _unshared(path: str, kind: pa.DataType) -> Iterator[tuple[str, str]]:
    types = pa.types
    for index in range(kind.num_fields):
        child = kind.field(index)
        yield from _unshared(f"{path}.{child.name}", child.type)
    if types.is_dictionary(kind):
        yield path, f"a dictionary of {kind.value_type}"
    elif types.is_timestamp(kind) and kind.tz is not None and kind.tz not in UTC_ALIASES:
        yield path, f"a timestamp of the time zone {kind.tz}"
    elif types.is_decimal(kind) and not types.is_decimal128(kind):
        yield path, str(kind)
    elif types.is_string_view(kind) or types.is_binary_view(kind) or isinstance(kind, _OTHER_LISTS):
        yield path, f"a {kind}"
    elif isinstance(kind, pa.BaseExtensionType) and kind != pa.uuid():
        yield path, str(kind)
