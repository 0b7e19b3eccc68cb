"""`add_files`: Parquet files of other writers become data files of the table, unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.arguments import shown
from tableformat.commit.committed_once import named_since
from tableformat.errors import AlreadyExistsError, CorruptFileError, InvalidArgumentError
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.keys.rising_rows import RisingRows
from tableformat.keys.sort_marker import SORTED_BY
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.own_names import origin_of, origins_in
from tableformat.metadata.partition_text import value_of_text
from tableformat.metadata.snapshot_view import last_sequence_number
from tableformat.operations.ranges.dropped import live_data_files
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.added_file import REFUSALS, UNDECIDED, AddedFile, partition_of_rows
from tableformat.operations.verbs.own_names import with_own_names
from tableformat.parquet.julian_dates import has_julian_dates
from tableformat.parquet.parquet_file import open_parquet
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.properties import name_mapping
from tableformat.storage.file_uris import location_of_existing
from tableformat.storage.hive_files import named_files
from tableformat.storage.location import local_path, place_of
from tableformat.storage.storage import actual_location, open_input, size_bytes
from tableformat.write.rows.checks import row_checks
from tableformat.write.staged import StagedFiles


def add_files(
    draft: Draft,
    *,
    file_paths: Sequence[str],
    check_duplicate_files: bool = True,
    partitions: Sequence[Mapping[str, str | None]] | None = None,
) -> None:
    """LK-10, LK-19, LK-31: stage the files unchanged. The commit adds the column names of the table to its name
    mapping, because columns of files without field ids are found only by it. Only footers are read, and rows if the
    footer does not prove that they are allowed in the table.

    `partitions` has, for each file, the values of columns in the name of its directory, as text. Without it,
    directories and patterns are replaced by their files, and the values come from the names of directories.
    """
    if isinstance(file_paths, str):
        raise InvalidArgumentError(f"file_paths must be a list of locations: file_paths=[{file_paths!r}].")
    if partitions is not None and len(partitions) != len(file_paths):
        raise InvalidArgumentError(
            f"partitions has {len(partitions)} values for {len(file_paths)} files; pass one for each file, {{}} for "
            "none."
        )
    file_paths = [location_of_existing(path or os.curdir) for path in file_paths]
    if partitions is None:
        file_paths, partitions = _named_files(draft, file_paths)
    if len(set(map(place_of, file_paths))) != len(file_paths):
        raise InvalidArgumentError("file_paths contains a file twice. Nothing was changed.")
    draft.begin_verb()
    draft.name_columns()
    if check_duplicate_files:
        _refuse_present(draft, file_paths)
    stated = [_stated(draft, path, each) for path, each in zip(file_paths, partitions, strict=True)]
    checked = [_data_file(draft, path, each) for path, each in zip(file_paths, stated, strict=True)]
    data_files = with_own_names(draft, checked)
    staged = StagedFiles(data_files=data_files, row_count=sum(file.record_count for file in data_files))
    since = last_sequence_number(draft.view.metadata) if check_duplicate_files else None
    draft.adopt_files(staged, since=since, held_against=draft.context.properties)


def _named_files(draft: Draft, locations: Sequence[str]) -> tuple[list[str], list[dict[str, str | None]]]:
    """The files at the locations, and the values in the names of their directories. Directories above the named one
    have values of the table only if they are named after a partition column."""
    columns = {draft.schema.find_column_name(field.source_id) for field in draft.context.spec.fields}
    files = [file for location in locations for file in named_files(draft.view.io, location)]
    values = [{**{name: text for name, text in file.above.items() if name in columns}, **file.values} for file in files]
    return [file.location for file in files], values


def _refuse_present(draft: Draft, file_paths: Sequence[str]) -> None:
    """LK-10: raise AlreadyExistsError for a live file, and for a file that a retained snapshot of the branch had. A
    file that was removed with all of its rows is allowed. Rows of any other removed file may be in other files."""
    given = {place_of(path): path for path in file_paths}
    names = {os.path.basename(path) for path in given}
    origins = {origin_of(path, draft.view.metadata.location): path for path in file_paths}

    def among(paths: Iterable[str]) -> list[str]:
        named = list(paths)
        found = {place_of(path) for path in named if os.path.basename(path) in names}
        return sorted(
            {given[place] for place in given.keys() & found}
            | {origins[origin] for origin in origins.keys() & origins_in(named)}
        )

    if present := among(file.file_path for file in live_data_files(draft.view)):
        raise AlreadyExistsError(
            f"{', '.join(present[:3])}: already in table {draft.name}. Nothing was changed. Remove these files from "
            "the call."
        )
    last_named: dict[str, Snapshot] = {}
    for snapshot, paths in named_since(draft.view, 0):
        last_named.update(dict.fromkeys(among(paths), snapshot))
    rewritten = sorted(path for path, snapshot in last_named.items() if not _only_deletes(snapshot))
    if rewritten:
        raise AlreadyExistsError(
            f"{', '.join(rewritten[:3])}: in table {draft.name} until snapshot "
            f"{last_named[rewritten[0]].snapshot_id}, which may have rewritten its rows to other files. Nothing was "
            "changed. Remove the file from the call, or pass check_duplicate_files=False to add its rows again."
        )


def _only_deletes(snapshot: Snapshot) -> bool:
    """Whether the snapshot added no rows according to its summary, so that the rows of removed files are in no other
    file."""
    return snapshot.summary is not None and snapshot.summary.operation is Operation.DELETE


def _stated(draft: Draft, path: str, values: Mapping[str, str | None]) -> dict[int, Any]:
    """Values in the name of a directory, in Iceberg's internal representation, by the position of the partition field.

    Raises InvalidArgumentError for a column without an identity partition field, because the value would not be stored
    anywhere.
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
            by = ", ".join(each for each in places if each is not None) or "no identity column"
            raise InvalidArgumentError(
                f"{path} has {name}={text} in its directory name, but {draft.name} is partitioned by {by}. Nothing "
                "was changed. Partition the table by the same columns, or append the rows."
            )
        column = schema.find_field(name)
        assert isinstance(column.field_type, PrimitiveType), "partition columns are primitive"
        if text is not None and not isinstance(text, str):
            raise InvalidArgumentError(
                f"{path}: in partitions, the value of {name} is {shown(text)}, but directory values must be text. "
                "Nothing was changed."
            )
        try:
            stated[places[name]] = None if text is None else value_of_text(text, column.field_type)
        except ValueError as error:
            raise InvalidArgumentError(
                f"{path}: {text!r} is not a valid value for the column {name!r}, which is a {column.field_type}. "
                "Nothing was changed."
            ) from error
    return stated


def _data_file(draft: Draft, path: str, stated: Mapping[int, Any]) -> DataFile:
    """The data file of a file whose columns, types and partition match the table. Raises InvalidArgumentError for any
    other file."""
    io = draft.view.io
    size = size_bytes(io, path)
    if size is None:
        raise InvalidArgumentError(f"the file {path} does not exist. Nothing was changed.")
    local = local_path(actual_location(io, path))
    if local is not None and os.path.isdir(local):
        raise InvalidArgumentError(f"{path} is a directory. Nothing was changed. Pass the files in it.")
    try:
        found = AddedFile.read(io, path, draft.view.metadata)
        partition = _partition(draft, found, stated)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(path, f"it is not a Parquet file ({error}).") from error
    except REFUSALS as error:
        raise _none_of_the_table(draft, path, error) from error
    metrics = found.metrics(draft.schema, draft.context.metrics_modes)
    _refuse_julian_dates(draft, path, found)
    data = DataFile(
        file_path=path,
        file_format=PARQUET,
        spec_id=draft.context.spec.spec_id,
        partition=partition,
        file_size_bytes=size,
        **entry_metrics(metrics),
    )
    _refuse_false_marker(draft, data)
    asked = [place for place, value in enumerate(partition) if value is UNDECIDED]
    if not asked and not _rows_may_be_refused(draft, data):
        return data
    return replace(data, partition=_partition_by_rows(draft, data, stated, asked))


def _none_of_the_table(draft: Draft, path: str, error: Exception) -> InvalidArgumentError:
    told = str(error).rstrip(".")
    return InvalidArgumentError(
        f"{path} cannot be added to {draft.name}: {told}. Nothing was changed. A file must have the columns and "
        "types of the table, and rows of one partition. Append the rows instead."
    )


def _refuse_julian_dates(draft: Draft, path: str, found: AddedFile) -> None:
    """LK-10: raise InvalidArgumentError for dates in the Julian calendar. Readers of the table interpret days in the
    proleptic Gregorian calendar (SP-49)."""
    if has_julian_dates(found.footer):
        raise InvalidArgumentError(
            f"{path} cannot be added to {draft.name}: Spark wrote its dates in the Julian calendar, so dates before "
            "1582-10-15 and times before 1900 would change their values. Nothing was changed. Read the file with "
            "Spark and append its rows."
        )


def _refuse_false_marker(draft: Draft, data: DataFile) -> None:
    """LK-10: raise InvalidArgumentError for a false sort marker. A program that reads a data file of a table with
    pyarrow and writes its rows in another order also copies our sort marker. Readers would rely on it to search the
    file (RD-11)."""
    with open_parquet(draft.view.io, data, name_mapping=name_mapping(draft.view.metadata.properties)) as file:
        # A column that the file does not have has the same value in all its rows.
        order = [field_id for field_id in file.sorted_by or () if field_id in file.leaves]
        rows = RisingRows()
        for group in range(file.row_group_count) if order else ():
            rows.add([column.combine_chunks() for column in file.read(order, [group]) if column is not None])
    if rows.falls_at is not None:
        raise InvalidArgumentError(
            f"{data.file_path} cannot be added to {draft.name}: its footer claims that its rows are sorted by "
            f"{', '.join('.'.join(file.leaves[each].path) for each in order)}, but the row at position "
            f"{rows.falls_at:,} sorts before the previous row. Nothing was changed. Either remove the entry "
            f"{SORTED_BY.decode()} from the key-value metadata of the file (in pyarrow with "
            "`replace_schema_metadata()`), or append the rows."
        )


def _partition(draft: Draft, found: AddedFile, stated: Mapping[int, Any]) -> tuple[Any, ...]:
    """The partition values from the footer, and from the directory for columns that are not in the file."""
    spec = draft.context.spec
    values = found.partition(spec, draft.schema)
    for place, value in stated.items():
        if spec.fields[place].source_id in found.field_ids and values[place] not in (UNDECIDED, value):
            raise InvalidArgumentError(
                f"its rows have {spec.fields[place].name} = {values[place]!r}, but its directory name has {value!r}"
            )
    return tuple(value if value is UNDECIDED else stated.get(place, value) for place, value in enumerate(values))


def _rows_may_be_refused(draft: Draft, data: DataFile) -> bool:
    """Whether each row must be checked, because the footer does not answer a check."""
    if row_checks(draft.context.properties, draft.schema, table=draft.name) or draft.context.range_partitions:
        return True
    counts = data.null_value_counts or {}
    return any(field.required and counts.get(field.field_id) != 0 for field in draft.schema.fields)


def _partition_by_rows(
    draft: Draft, data: DataFile, stated: Mapping[int, Any], asked: Sequence[int]
) -> tuple[Any, ...]:
    """The partition, with the fields at the positions `asked` taken from the rows. Raises RowsRefusedError for rows
    that an append would reject."""
    fields, path = draft.context.spec.fields, data.file_path
    with open_input(draft.view.io, path) as stream, closing(pq.ParquetFile(stream)) as file:
        columns = {
            field.name: _scalar(field, value)
            for place, value in stated.items()
            if (field := _source(draft, place)).name not in file.schema_arrow.names
        }
        schema = pa.schema([*file.schema_arrow, *(pa.field(name, value.type) for name, value in columns.items())])
        batches = (_with_constants(batch, columns, schema) for batch in file.iter_batches())
        rows = draft.conformed(pa.RecordBatchReader.from_batches(schema, batches))
        try:
            found = partition_of_rows([fields[place] for place in asked], draft.schema, rows)
        except InvalidArgumentError as error:
            raise _none_of_the_table(draft, path, error) from error
    values = dict(zip(asked, found, strict=True))
    if wrong := [place for place in asked if place in stated and stated[place] != values[place]]:
        told = f"its rows have {fields[wrong[0]].name} = {values[wrong[0]]!r}, but its directory name has another value"
        raise _none_of_the_table(draft, path, InvalidArgumentError(told))
    return tuple(values.get(place, value) for place, value in enumerate(data.partition))


def _source(draft: Draft, place: int) -> NestedField:
    return draft.schema.find_field(draft.context.spec.fields[place].source_id)


def _scalar(field: NestedField, value: Any) -> pa.Scalar:
    assert isinstance(field.field_type, PrimitiveType), "partition columns are primitive"
    return array_of_internal_values([value], field.field_type)[0]


def _with_constants(batch: pa.RecordBatch, columns: Mapping[str, pa.Scalar], schema: pa.Schema) -> pa.RecordBatch:
    constants = [pa.repeat(value, batch.num_rows) for value in columns.values()]
    return pa.RecordBatch.from_arrays([*batch.columns, *constants], schema=schema)
