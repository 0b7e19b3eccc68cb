"""`add_files`: Parquet files of others become data files of the table, where they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, parquet_file_to_data_file
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AssertCurrentSchemaId, SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.arguments import shown
from tableformat.commit.committed_once import named_since
from tableformat.commit.metadata_commit import commit_metadata
from tableformat.errors import AlreadyExistsError, CorruptFileError, InvalidArgumentError
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.partition_text import value_of_text
from tableformat.metadata.snapshot_view import last_sequence_number
from tableformat.operations.definition.column_names import leaves_of_other_names, with_current_names
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.ranges.dropped import live_data_files
from tableformat.parquet.julian_dates import has_julian_dates, may_have_julian_dates
from tableformat.parquet.metrics_modes import METRICS, only_bounded, only_counted, stated_modes
from tableformat.properties import NAME_MAPPING, name_mapping
from tableformat.storage.location import local_path, one_spelling
from tableformat.storage.storage import actual_location, open_input, reading, size_bytes
from tableformat.write.rows.checks import row_checks
from tableformat.write.staged import StagedFiles


def name_columns(iceberg: IcebergTable) -> None:
    """LK-10, LK-19: the table's name mapping, without which columns of files that have no field ids are not found, has
    the names of its columns."""

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        mapping = _with_current_names(table.metadata)
        if mapping == name_mapping(table.metadata.properties):
            return (), ()
        schema_is = AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id})
        return (SetPropertiesUpdate(updates={NAME_MAPPING: mapping.model_dump_json()}),), (schema_is,)

    if _with_current_names(iceberg.metadata) != name_mapping(iceberg.metadata.properties):
        commit_metadata(iceberg, prepare)


def _with_current_names(metadata: TableMetadata) -> NameMapping:
    return with_current_names(name_mapping(metadata.properties) or NameMapping([]), metadata.schema())


def add_files(
    draft: Draft,
    *,
    file_paths: Sequence[str],
    check_duplicate_files: bool = True,
    partitions: Sequence[Mapping[str, str | None]] | None = None,
) -> None:
    """LK-10: stage the files as they are. Only footers are read, and rows where the footer does not say that they may
    be in the table.

    `partitions`: for each file the values of columns that its directory says, as text.
    """
    if isinstance(file_paths, str):
        raise InvalidArgumentError(f"file_paths is a list of locations: file_paths=[{file_paths!r}].")
    if partitions is not None and len(partitions) != len(file_paths):
        raise InvalidArgumentError(
            f"partitions has {len(partitions)} values for {len(file_paths)} files; give one for each, {{}} for none."
        )
    file_paths = [_whole(path) for path in file_paths]
    if len(set(map(_place, file_paths))) != len(file_paths):
        raise InvalidArgumentError("file_paths names a file twice. Nothing was changed.")
    draft.begin_verb()
    if check_duplicate_files:
        _refuse_present(draft, file_paths)
    stated = [
        _stated(draft, path, each) for path, each in zip(file_paths, partitions or [{}] * len(file_paths), strict=True)
    ]
    data_files = tuple(_data_file(draft, path, each) for path, each in zip(file_paths, stated, strict=True))
    staged = StagedFiles(data_files=data_files, row_count=sum(file.record_count for file in data_files))
    since = last_sequence_number(draft.view.metadata) if check_duplicate_files else None
    draft.adopt_files(staged, since=since, held_against=draft.context.properties)


def _whole(location: str) -> str:
    """A path relative to a working directory would mean another file elsewhere."""
    path = local_path(location)
    return os.path.abspath(location) if path == location else location


def _place(location: str) -> str:
    """One text for a file, however it is spelt and through whatever links of directories."""
    local = local_path(location)
    return one_spelling(location) if local is None else os.path.realpath(local)


def _refuse_present(draft: Draft, file_paths: Sequence[str]) -> None:
    """LK-10: AlreadyExistsError for a file that is live, and for one that a retained snapshot of the branch had, unless
    it left with all of its rows: they may be in other files by now."""
    given = {_place(path): path for path in file_paths}
    names = {os.path.basename(path) for path in given}

    def among(paths: Iterable[str]) -> list[str]:
        found = {_place(path) for path in paths if os.path.basename(path) in names}
        return sorted(given[place] for place in given.keys() & found)

    if present := among(file.file_path for file in live_data_files(draft.view)):
        raise AlreadyExistsError(
            f"{', '.join(present[:3])}: in table {draft.name} already. Nothing was changed; leave out what the table "
            "has."
        )
    last_named: dict[str, Snapshot] = {}
    for snapshot, paths in named_since(draft.view, 0):
        last_named.update(dict.fromkeys(among(paths), snapshot))
    rewritten = sorted(path for path, snapshot in last_named.items() if not _only_deletes(snapshot))
    if rewritten:
        raise AlreadyExistsError(
            f"{', '.join(rewritten[:3])}: in table {draft.name} until snapshot "
            f"{last_named[rewritten[0]].snapshot_id}, which may have written its rows to other files. Nothing was "
            "changed. Leave it out; check_duplicate_files=False adds its rows once more."
        )


def _only_deletes(snapshot: Snapshot) -> bool:
    """Whether the snapshot says that it added no rows, so that those of files that left are in no others."""
    return snapshot.summary is not None and snapshot.summary.operation is Operation.DELETE


def _stated(draft: Draft, path: str, values: Mapping[str, str | None]) -> dict[int, Any]:
    """Values that a directory says, in Iceberg's internal representation, by the place of the partition field.

    InvalidArgumentError for a column that the table is not partitioned by as it is: such a value would be nowhere.
    """
    schema, fields = draft.schema, draft.context.spec.fields
    places = {
        schema.find_column_name(field.source_id): place
        for place, field in enumerate(fields)
        if isinstance(field.transform, IdentityTransform)
    }
    stated: dict[int, Any] = {}
    for name, text in values.items():
        if name not in places:
            by = ", ".join(each for each in places if each is not None) or "no column as it is"
            raise InvalidArgumentError(
                f"{path} has {name}={text} in its directory, and {draft.name} is partitioned by {by}. Nothing was "
                "changed. Partition the table by the same columns, or append the rows."
            )
        column = schema.find_field(name)
        assert isinstance(column.field_type, PrimitiveType), "partition columns are primitive"
        if text is not None and not isinstance(text, str):
            raise InvalidArgumentError(
                f"{path}: partitions says that {name} is {shown(text)}, and values of directories are text. Nothing "
                "was changed."
            )
        try:
            stated[places[name]] = None if text is None else value_of_text(text, column.field_type)
        except ValueError as error:
            raise InvalidArgumentError(
                f"{path}: {text!r} is no value of the column {name!r}, which is a {column.field_type}. Nothing was "
                "changed."
            ) from error
    return stated


def _data_file(draft: Draft, path: str, stated: Mapping[int, Any]) -> DataFile:
    """Whose columns, types and partition are those of the table. InvalidArgumentError for any other file."""
    io = draft.view.io
    size = size_bytes(io, path)
    if size is None:
        raise InvalidArgumentError(f"there is no file {path}. Nothing was changed.")
    local = local_path(actual_location(io, path))
    if local is not None and os.path.isdir(local):
        raise InvalidArgumentError(f"{path} is a directory. Nothing was changed; name the files in it.")
    try:
        with reading(path):
            found = parquet_file_to_data_file(io, _as_read(draft), path)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(path, f"it is no Parquet file ({error}).") from error
    except (ValueError, KeyError, NotImplementedError, OverflowError, UnsupportedPyArrowTypeException) as error:
        raise InvalidArgumentError(
            f"{path} cannot be added to {draft.name}: {error}. Nothing was changed. Files need the table's columns and "
            "types, and rows of one partition, which is read off their bounds; append the rows otherwise."
        ) from error
    _refuse_other_names(draft, path, found)
    _refuse_julian_dates(draft, path, found)
    modes = draft.context.metrics_modes
    data = DataFile(
        file_path=path,
        file_format=PARQUET,
        spec_id=draft.context.spec.spec_id,
        partition=_partition(draft, path, [found.partition[place] for place in range(len(found.partition))], stated),
        record_count=found.record_count,
        file_size_bytes=size,
        column_sizes=found.column_sizes,
        value_counts=only_counted(found.value_counts, modes),
        null_value_counts=only_counted(found.null_value_counts, modes),
        nan_value_counts=only_counted(found.nan_value_counts or {}, modes) or None,
        lower_bounds=only_bounded(found.lower_bounds, modes),
        upper_bounds=only_bounded(found.upper_bounds, modes),
        split_offsets=tuple(found.split_offsets or ()) or None,
    )
    if _rows_may_be_refused(draft, data):
        _hold_rows_against_the_table(draft, path, stated)
    return data


def _refuse_other_names(draft: Draft, path: str, found: IcebergDataFile) -> None:
    """LK-19: a reader of the table finds the file's columns by the name mapping, and not by the names of now."""
    schema, mapping = draft.schema, name_mapping(draft.context.properties)
    others = frozenset() if mapping is None else leaves_of_other_names(mapping, schema)
    names = sorted(str(schema.find_column_name(field_id)) for field_id in others & (found.column_sizes or {}).keys())
    if names:
        raise InvalidArgumentError(
            f"{path} cannot be added to {draft.name}: {', '.join(map(repr, names))} is the name of another column, or "
            f"of one that was dropped, in files without field ids, such as others that were added ({NAME_MAPPING}). "
            "Nothing was changed. Append the rows of the file."
        )


def _refuse_julian_dates(draft: Draft, path: str, found: IcebergDataFile) -> None:
    """LK-10: a reader of the table takes days for those of the proleptic Gregorian calendar (SP-49)."""
    if not may_have_julian_dates(draft.schema, found.lower_bounds or {}):
        return
    with open_input(draft.view.io, path) as stream, closing(pq.ParquetFile(stream)) as file:
        if has_julian_dates(file.metadata):
            raise InvalidArgumentError(
                f"{path} cannot be added to {draft.name}: Spark wrote its dates by the Julian calendar, and those "
                "before 1582-10-15, times before 1900, would be other ones in the table. Nothing was changed. Read the "
                "file by Spark and append its rows."
            )


def _partition(draft: Draft, path: str, found: Sequence[Any], stated: Mapping[int, Any]) -> tuple[Any, ...]:
    """What the bounds say, and what the directory says of columns that are not in the file."""
    for place, value in stated.items():
        if found[place] is not None and found[place] != value:
            raise InvalidArgumentError(
                f"{path} cannot be added to {draft.name}: its rows have {draft.context.spec.fields[place].name} = "
                f"{found[place]!r}, and its directory says {value!r}. Nothing was changed."
            )
    return tuple(stated.get(place, value) for place, value in enumerate(found))


def _as_read(draft: Draft) -> TableMetadata:
    """PyIceberg refuses files that would allow a null in a required column; whether they have one is seen here. It
    takes the partition off bounds, which all columns have for it, whatever the table keeps of them (FM-8)."""
    metadata = draft.view.metadata
    current = metadata.schema()
    fields = [field.model_copy(update={"required": False}) for field in current.fields]
    relaxed = Schema(*fields, schema_id=current.schema_id)
    others = [schema for schema in metadata.schemas if schema.schema_id != current.schema_id]
    properties = {name: value for name, value in metadata.properties.items() if not name.startswith(METRICS)}
    properties |= stated_modes(draft.context.metrics_modes, current)
    return metadata.model_copy(update={"schemas": [*others, relaxed], "properties": properties})


def _rows_may_be_refused(draft: Draft, data: DataFile) -> bool:
    """Whether something has to be asked of each row that the footer does not answer."""
    if row_checks(draft.context.properties, draft.schema, table=draft.name) or draft.context.range_partitions:
        return True
    counts = data.null_value_counts or {}
    return any(field.required and counts.get(field.field_id) != 0 for field in draft.schema.fields)


def _hold_rows_against_the_table(draft: Draft, path: str, stated: Mapping[int, Any]) -> None:
    """RowsRefusedError for rows that an append would refuse."""
    with open_input(draft.view.io, path) as stream, closing(pq.ParquetFile(stream)) as file:
        columns = {
            field.name: _scalar(field, value)
            for place, value in stated.items()
            if (field := _source(draft, place)).name not in file.schema_arrow.names
        }
        schema = pa.schema([*file.schema_arrow, *(pa.field(name, value.type) for name, value in columns.items())])
        batches = (_with_constants(batch, columns, schema) for batch in file.iter_batches())
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        for _ in draft.conformed(reader):
            pass


def _source(draft: Draft, place: int) -> NestedField:
    return draft.schema.find_field(draft.context.spec.fields[place].source_id)


def _scalar(field: NestedField, value: Any) -> pa.Scalar:
    assert isinstance(field.field_type, PrimitiveType), "partition columns are primitive"
    return array_of_internal_values([value], field.field_type)[0]


def _with_constants(batch: pa.RecordBatch, columns: Mapping[str, pa.Scalar], schema: pa.Schema) -> pa.RecordBatch:
    constants = [pa.repeat(value, batch.num_rows) for value in columns.values()]
    return pa.RecordBatch.from_arrays([*batch.columns, *constants], schema=schema)
