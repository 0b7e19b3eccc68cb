"""Rewrites paths in files of row deletes: position delete files, and the footers of deletion vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from tableformat.deletes.codecs.position_rows import FILE_PATH, POSITION, path_texts
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.content_file import PARQUET, PUFFIN
from tableformat.metadata.puffin import REFERENCED_DATA_FILE, BlobMetadata, with_blobs
from tableformat.parquet.parquet_output import ParquetOutput
from tableformat.relocation.manifest_paths import RewrittenDelete
from tableformat.relocation.naming import Naming
from tableformat.storage.outage import raise_unless_damage
from tableformat.storage.storage import delete_if_present, open_input, read_bytes, write_bytes

Place: TypeAlias = Callable[[str], str]
_ROW_GROUP_ROWS: Final = 1_000_000
_ARROW_SCHEMA: Final = b"ARROW:schema"


def same_place(location: str) -> str:
    return location


def rewrite_row_deletes(
    source: FileIO, target: FileIO, location: str, file_format: str, naming: Naming, written_at: Place = same_place
) -> RewrittenDelete:
    """LK-6: write the same deletes for the new locations of their data files. A file of an earlier attempt is replaced.

    `written_at` gives the location to write to for a final location.

    Raises CorruptFileError for a file that cannot be read, UnsupportedFeatureError for ORC or Avro.
    """
    place = naming.rewritten(location, "data")
    if file_format.upper() == PUFFIN:
        written = _rewrite_vectors(source, target, location, written_at(place), naming)
        return replace(written, location=place)
    if file_format.upper() == PARQUET:
        written = _rewrite_positions(source, target, location, written_at(place), naming)
        return replace(written, location=place)
    raise UnsupportedFeatureError(
        f"the position delete file {location} is in {file_format}, which this library cannot write: convert it with "
        "the engine that wrote it, then relocate the table."
    )


def _rewrite_vectors(source: FileIO, target: FileIO, location: str, place: str, naming: Naming) -> RewrittenDelete:
    """The vectors keep their positions in the file, because manifest entries state their offsets."""

    def renamed(blob: BlobMetadata) -> BlobMetadata:
        path = blob.properties.get(REFERENCED_DATA_FILE)
        if path is None:
            return blob
        return replace(blob, properties={**blob.properties, REFERENCED_DATA_FILE: naming.kept(path)})

    data = with_blobs(read_bytes(source, location), renamed, location)
    put_bytes(target, place, data)
    return RewrittenDelete(place, len(data))


def _rewrite_positions(source: FileIO, target: FileIO, location: str, place: str, naming: Naming) -> RewrittenDelete:
    """Sorted by path and position, as the specification requires. The order of the paths may have changed."""
    try:
        with open_input(source, location) as opened:
            file = pq.ParquetFile(opened)
            rows, described = file.read(), file.metadata.metadata or {}
    except pa.ArrowException as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"it cannot be read as Parquet ({error}).") from error
    encoded = rows[FILE_PATH].combine_chunks().dictionary_encode()
    paths = [naming.kept(path) for path in path_texts(encoded.dictionary)]
    named = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(paths, pa.string())).cast(pa.string())
    rows = rows.set_column(rows.schema.get_field_index(FILE_PATH), _field(rows.schema, FILE_PATH), named)
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(FILE_PATH, "ascending"), (POSITION, "ascending")]))
    delete_if_present(target, place)
    output = ParquetOutput(
        target,
        place,
        rows.schema,
        {},
        key_value_metadata={name: value for name, value in described.items() if name != _ARROW_SCHEMA},
        dictionary_columns=[FILE_PATH],
    )
    try:
        for start in range(0, max(len(rows), 1), _ROW_GROUP_ROWS):
            output.write_row_group(rows.slice(start, _ROW_GROUP_ROWS))
    except BaseException:
        output.abandon()
        raise
    size_bytes = output.finish().size_bytes
    return RewrittenDelete(place, size_bytes, min(paths, default=None), max(paths, default=None))


def put_bytes(io: FileIO, location: str, data: bytes) -> None:
    """Write a file that no metadata names yet. It replaces a file of an earlier attempt."""
    delete_if_present(io, location)
    write_bytes(io, location, data)


def _field(schema: pa.Schema, name: str) -> pa.Field:
    return schema.field(name).with_type(pa.string())
