"""Writes delete files again: for data files that have changed, and without the keys of the scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, PrimitiveType, UUIDType

from tableformat.commit.change import FileKey, file_key
from tableformat.deletes.codecs.deletion_vector import encode_vector
from tableformat.deletes.codecs.position_rows import FILE_PATH, FILE_PATH_FIELD_ID, POSITION, POSITION_FIELD_ID
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.cuts import CutArray, cuts_at_prefixes
from tableformat.deletes.spans.spans import INHERITED, SpanArray
from tableformat.keys.arrow_columns import stored_key_array
from tableformat.maintenance.erasure.data_files import ErasureContext, new_metrics
from tableformat.maintenance.erasure.outcome import Outcomes
from tableformat.maintenance.erasure.parquet_files import rewrite_parquet
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.merge_on_read.delete_columns import value_where_missing
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.merge_on_read.deleted_positions import missing_values
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.puffin import (
    DELETION_VECTOR_V1,
    REFERENCED_DATA_FILE,
    BlobMetadata,
    deletion_vector_metadata,
    encode_puffin,
    read_footer,
)
from tableformat.parquet.key_reader import KeyReader
from tableformat.parquet.metrics_modes import KEY_BOUND_WIDTH
from tableformat.parquet.parquet_file import open_parquet
from tableformat.storage.storage import write_bytes
from tableformat.write.delete_files.delete_files import write_parquet_file
from tableformat.write.delete_files.range_deletes import write_range_delete_file

_PATH_TYPE: Final = pa.dictionary(pa.int32(), pa.string())
_POSITION_SCHEMA: Final = pa.schema(
    [
        pa.field(
            FILE_PATH, _PATH_TYPE, nullable=False, metadata={b"PARQUET:field_id": str(FILE_PATH_FIELD_ID).encode()}
        ),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={b"PARQUET:field_id": str(POSITION_FIELD_ID).encode()}),
    ]
)
_POSITION_COLUMNS: Final = frozenset({FILE_PATH_FIELD_ID, POSITION_FIELD_ID})


def rewrite_deletes(
    deletes: Mapping[FileKey, DeleteFile],
    data_files: Mapping[str, DataFile],
    outcomes: Outcomes,
    context: ErasureContext,
) -> None:
    """MT-114, MT-115: add the outcome of every delete file that changes. `data_files` are the live data files before,
    by location.

    Writes nothing for a delete file that stays as it is.
    """
    vectors: defaultdict[str, list[DeleteFile]] = defaultdict(list)
    for key, delete in deletes.items():
        if key in outcomes.deletes_before:
            continue
        if delete.kind is DeleteKind.DELETION_VECTOR:
            # All vectors of a Puffin file are written again together.
            vectors[delete.file_path].append(delete)
            continue
        if context.in_partition(delete):
            _settle(outcomes, delete, None)
            continue
        match delete.kind:
            case DeleteKind.POSITION:
                _rewrite_positions(delete, data_files, outcomes, context)
            case DeleteKind.EQUALITY:
                _rewrite_keys(delete, outcomes, context)
            case DeleteKind.RANGE:
                _rewrite_spans(delete, data_files, outcomes, context)
    for location, of_file in vectors.items():
        _rewrite_vectors(location, of_file, data_files, outcomes, context)


def _settle(outcomes: Outcomes, before: DeleteFile, after: DeleteFile | None) -> None:
    outcomes.deletes[file_key(before)] = after
    outcomes.deletes_before[file_key(before)] = before


# Deletes by position --------------------------------------------------------------------------------------------------


def _rewrite_positions(
    delete: DeleteFile, data_files: Mapping[str, DataFile], outcomes: Outcomes, context: ErasureContext
) -> None:
    """MT-114: the positions of erased rows leave the file, and the others move up. A stored copy of deleted rows is
    left out."""
    named = named_data_file(delete)
    has_only_positions = _has_only_positions(delete, context)
    if named is not None and named in data_files.keys() - outcomes.data.keys() and has_only_positions:
        return
    stored = context.merge.loader.positions_by_file(delete)
    is_touched = any(path in outcomes.data or _is_gone_and_named(path, data_files, context) for path in stored)
    if not is_touched and has_only_positions:
        return
    moved = _moved(stored, data_files, outcomes, context)
    _settle(outcomes, delete, _write_positions(delete, moved, context) if moved else None)


def _has_only_positions(delete: DeleteFile, context: ErasureContext) -> bool:
    with open_parquet(context.io, delete, name_mapping=None) as opened:
        return int(opened.metadata.num_columns) == len(_POSITION_COLUMNS)


def _is_gone_and_named(path: str, data_files: Mapping[str, DataFile], context: ErasureContext) -> bool:
    return path not in data_files and context.names_path(path)


def _moved(
    stored: Mapping[str, PositionSet],
    data_files: Mapping[str, DataFile],
    outcomes: Outcomes,
    context: ErasureContext,
) -> dict[str, PositionSet]:
    """By the new location of the data file. A file that no snapshot has, and whose location names the scope, is left
    out."""
    moved: dict[str, PositionSet] = {}
    for path, positions in stored.items():
        outcome = outcomes.data.get(path)
        if outcome is None:
            if not _is_gone_and_named(path, data_files, context):
                moved[path] = positions
        elif outcome.after is not None and (left := outcome.moved(positions)):
            moved[outcome.after.file_path] = left
    return dict(sorted(moved.items()))


def _write_positions(delete: DeleteFile, moved: dict[str, PositionSet], context: ErasureContext) -> DeleteFile:
    arrays = [positions.to_array() for positions in moved.values()]
    codes = np.repeat(np.arange(len(moved), dtype=np.int32), [len(each) for each in arrays])
    paths = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(moved), pa.string()))
    rows = np.concatenate(arrays)
    table = pa.Table.from_arrays([paths, pa.array(rows)], schema=_POSITION_SCHEMA)
    location, written = write_parquet_file(
        context.write,
        context.created,
        table,
        spec_id=delete.spec_id,
        partition=delete.partition,
        dictionary_columns=[FILE_PATH],
    )
    first, last = next(iter(moved)), next(reversed(moved))
    counts = {FILE_PATH_FIELD_ID: len(rows), POSITION_FIELD_ID: len(rows)}
    return replace(
        delete,
        file_path=location,
        file_size_bytes=written.size_bytes,
        record_count=len(rows),
        referenced_data_file=first if delete.referenced_data_file is not None and len(moved) == 1 else None,
        column_sizes=None,
        value_counts=counts,
        null_value_counts=dict.fromkeys(counts, 0),
        nan_value_counts=None,
        lower_bounds={
            FILE_PATH_FIELD_ID: first.encode(),
            POSITION_FIELD_ID: to_bound(int(rows.min()), LongType()),
        },
        upper_bounds={FILE_PATH_FIELD_ID: last.encode(), POSITION_FIELD_ID: to_bound(int(rows.max()), LongType())},
        key_metadata=None,
        split_offsets=None,
    )


def _rewrite_vectors(
    location: str,
    vectors: Sequence[DeleteFile],
    data_files: Mapping[str, DataFile],
    outcomes: Outcomes,
    context: ErasureContext,
) -> None:
    """MT-114: the vectors of one Puffin file, for the new data files. Vectors that no snapshot has are left out."""
    named = {each.referenced_data_file for each in vectors}
    footer = read_footer(context.io, location, vectors[0].file_size_bytes)
    is_named = any(_is_gone_and_named(path, data_files, context) for path in vectors_in(footer.blobs))
    if not (named & outcomes.data.keys()) and not is_named:
        return
    blobs: list[tuple[DeleteFile, str, PositionSet, bytes]] = []
    for vector in vectors:
        stored = context.merge.loader.positions_by_file(vector)
        moved = _moved(stored, data_files, outcomes, context)
        if not moved:
            _settle(outcomes, vector, None)
            continue
        ((path, positions),) = moved.items()
        blobs.append((vector, path, positions, encode_vector(positions)))
    if not blobs:
        return
    # FM-11: smaller vectors come first.
    blobs.sort(key=lambda each: len(each[3]))
    content, placed = encode_puffin(
        [(deletion_vector_metadata(path, len(positions)), blob) for _, path, positions, blob in blobs]
    )
    written_at = context.created.new_location("-deletes", None, (), extension="puffin")
    size_bytes = write_bytes(context.io, written_at, content)
    for (vector, path, positions, _), blob in zip(blobs, placed.blobs, strict=True):
        after = replace(
            vector,
            file_path=written_at,
            file_size_bytes=size_bytes,
            record_count=len(positions),
            referenced_data_file=path,
            content_offset=blob.offset,
            content_size_bytes=blob.length_bytes,
            lower_bounds=None,
            upper_bounds=None,
            column_sizes=None,
            value_counts=None,
            null_value_counts=None,
            nan_value_counts=None,
            split_offsets=None,
            key_metadata=None,
        )
        _settle(outcomes, vector, after)


def vectors_in(blobs: Iterable[BlobMetadata]) -> list[str]:
    """The data files that the vectors of a Puffin file name."""
    return [blob.properties.get(REFERENCED_DATA_FILE, "") for blob in blobs if blob.type == DELETION_VECTOR_V1]


# Deletes by key -------------------------------------------------------------------------------------------------------


def named_keys(delete: DeleteFile, context: ErasureContext) -> tuple[PositionSet, bool]:
    """MT-115: the rows of an equality delete file that name the scope, and whether its delete columns do so.

    If only other columns of the file do, such as a copy of the deleted row, the delete itself may reach other rows.
    """
    compared = set(delete.equality_ids or ())
    spec = context.metadata.specs()[delete.spec_id]
    constants = {field.source_id for field in spec.fields if isinstance(field.transform, IdentityTransform)}
    with open_parquet(context.io, delete, name_mapping=context.merge.name_mapping) as opened:
        known = {*opened.leaves, *constants}
        if not context.scope.field_ids <= known or opened.row_count == 0:
            return PositionSet.empty(), True
        wanted = sorted(context.scope.field_ids)
        columns: dict[int, pa.Array] = {}
        for field_id, column in zip(wanted, opened.read(wanted, range(opened.row_group_count)), strict=True):
            kind = context.every_column.find_type(field_id)
            if column is None:
                value = value_where_missing(context.metadata, delete, context.merge.fields[field_id])
                columns[field_id] = pa.repeat(value, opened.row_count)
            else:
                assert isinstance(kind, PrimitiveType), "a scope compares primitive columns"
                columns[field_id] = stored_key_array(_plain(column), kind, name=str(field_id))
        mask = context.scope.matching(columns, opened.row_count)
    if mask is None:
        return PositionSet.empty(), True
    return PositionSet.from_mask(np.asarray(mask)), context.scope.field_ids <= compared | constants


def _rewrite_keys(delete: DeleteFile, outcomes: Outcomes, context: ErasureContext) -> None:
    """MT-115: the keys of the scope leave the file, because all their rows are erased."""
    named, by_key = named_keys(delete, context)
    if not named:
        return
    if by_key and len(named) == delete.record_count:
        _settle(outcomes, delete, None)
        return
    location = context.created.new_location("-deletes", delete.spec_id, delete.partition)
    with open_parquet(context.io, delete, name_mapping=context.merge.name_mapping) as opened:
        rewritten = rewrite_parquet(
            opened,
            named if by_key else PositionSet.empty(),
            context.scope,
            context.write,
            location,
            only_columns=None if by_key else frozenset(delete.equality_ids or ()),
            has_bloom_filters=False,
        )
    metrics = new_metrics(delete, rewritten, context, width=KEY_BOUND_WIDTH)
    uuids = {each.field_id for each in context.every_column.fields if isinstance(each.field_type, UUIDType)}
    for name in ("lower_bounds", "upper_bounds"):
        metrics[name] = {field_id: bound for field_id, bound in metrics[name].items() if field_id not in uuids}
    after = replace(
        delete, file_path=location, file_size_bytes=rewritten.written.size_bytes, key_metadata=None, **metrics
    )
    _settle(outcomes, delete, after)


# Deletes by range -----------------------------------------------------------------------------------------------------


def named_cuts(cuts: CutArray, scope: ErasureScope) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """MT-115: the cuts that bind all columns of the scope, to values of the scope."""
    none = np.zeros(len(cuts), np.bool_)
    needed = [at for at, field_id in enumerate(cuts.key.field_ids) if field_id in scope.field_ids]
    if len(needed) < len(scope.field_ids) or not len(cuts):
        return none
    columns = {cuts.key.field_ids[at]: cuts.columns[at] for at in needed}
    mask = scope.matching(columns, len(cuts))
    if mask is None:
        return none
    return np.asarray(mask, np.bool_) & (cuts.depth > max(needed))


def _rewrite_spans(
    delete: DeleteFile, data_files: Mapping[str, DataFile], outcomes: Outcomes, context: ErasureContext
) -> None:
    """MT-115: a span of the scope alone leaves the file. A wider span that ends at a key of the scope ends at the
    nearest key of a remaining row instead, so it deletes the same remaining rows."""
    spans = context.merge.loader.range_spans(delete)
    lower_named, upper_named = named_cuts(spans.lower, context.scope), named_cuts(spans.upper, context.scope)
    if not (lower_named | upper_named).any():
        return
    named = np.flatnonzero((lower_named | upper_named) & ~(lower_named & upper_named & _of_one_value(spans, context)))
    kept = [spans.take(np.flatnonzero(~(lower_named | upper_named)))]
    for number in named.tolist():
        span = spans.take(np.array([number]))
        kept += _without_names(
            span, bool(lower_named[number]), bool(upper_named[number]), data_files, outcomes, context
        )
    left = [each for each in kept if len(each)]
    _settle(outcomes, delete, _write_spans(delete, _sorted(SpanArray.concat(left)), context) if left else None)


def _of_one_value(spans: SpanArray, context: ErasureContext) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The spans whose cuts have the same values in the columns of the scope, which are the first ones: all their keys
    have these values, so no data file is read for them."""
    depth = len(context.scope.field_ids)
    if set(spans.key.field_ids[:depth]) != context.scope.field_ids:
        return np.zeros(len(spans), np.bool_)
    same = np.ones(len(spans), np.bool_)
    for lower, upper in zip(spans.lower.columns[:depth], spans.upper.columns[:depth], strict=True):
        same &= np.asarray(pc.equal(lower, upper).fill_null(False))
    return same


def _without_names(
    span: SpanArray,
    lower_named: bool,
    upper_named: bool,
    data_files: Mapping[str, DataFile],
    outcomes: Outcomes,
    context: ErasureContext,
) -> list[SpanArray]:
    """The span between the first and the last remaining key that it reaches, at the ends that name the scope. Empty if
    it reaches no remaining key."""
    first: CutArray | None = None
    last: CutArray | None = None
    for data in data_files.values():
        keys = _remaining_keys(data, span, outcomes, context)
        if keys is None or not len(keys):
            continue
        encoded = keys.encoded
        smallest, greatest = (pc.index(encoded, reduce(encoded)).as_py() for reduce in (pc.min, pc.max))
        low, high = keys.take(np.array([smallest])), keys.take(np.array([greatest]))
        if first is None or low.encoded[0].as_py() < first.encoded[0].as_py():
            first = low
        if last is None or high.encoded[0].as_py() > last.encoded[0].as_py():
            last = high
    if first is None or last is None:
        return []
    lower = first if lower_named else span.lower
    upper = last.above_prefixes() if upper_named else span.upper
    return [SpanArray(span.key, lower, upper, span.sequence_numbers)]


def _remaining_keys(data: DataFile, span: SpanArray, outcomes: Outcomes, context: ErasureContext) -> CutArray | None:
    """The keys of the rows in the span that are not erased, as cuts before them. None if the bounds of the file exclude
    the span."""
    lower, upper = span.lower.encoded[0].as_py(), span.upper.encoded[0].as_py()
    bounds = key_bounds(data, span.key)
    outcome = outcomes.data.get(data.file_path)
    if bounds.upper <= lower or bounds.lower >= upper or (outcome is not None and outcome.is_dropped):
        return None
    field_ids = span.key.field_ids
    with context.merge.open_data_file(data) as opened:
        reader = KeyReader(opened, missing_values(data, context.merge))
        read = reader.columns(field_ids, range(opened.row_group_count))
        row_count = opened.row_count
    columns = [
        stored_key_array(_plain(column), key_type, name=name)
        for column, key_type, name in zip(read, span.key.types, span.key.names, strict=True)
    ]
    keys = cuts_at_prefixes(span.key, columns, after=False)
    inside = pc.and_(pc.greater_equal(keys.encoded, pa.scalar(lower, pa.large_binary())), _below(keys, upper))
    mask = np.asarray(inside)
    if outcome is not None:
        mask = mask & ~outcome.positions.mask(0, row_count)
    return keys.take(np.flatnonzero(mask))


def _below(keys: CutArray, upper: bytes) -> pa.BooleanArray:
    return pc.less(keys.encoded, pa.scalar(upper, pa.large_binary()))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _sorted(spans: SpanArray) -> SpanArray:
    order = np.asarray(pc.sort_indices(spans.lower.encoded))
    return spans.take(order)


def _write_spans(delete: DeleteFile, spans: SpanArray, context: ErasureContext) -> DeleteFile:
    """The file has the age of the old one. Spans with the number of the entry inherit it, as they did."""
    numbers = spans.sequence_numbers
    assert numbers is not None, "loaded spans are numbered (RD-8)"
    own = np.where(numbers == delete.sequence_number, INHERITED, numbers)
    stored = replace(spans, sequence_numbers=None if (own == INHERITED).all() else own)
    written = write_range_delete_file(context.write, stored, spec_id=delete.spec_id, partition=delete.partition)
    return replace(
        written,
        sequence_number=delete.sequence_number,
        file_sequence_number=delete.file_sequence_number,
        sort_order_id=delete.sort_order_id,
    )
