"""Deletion vectors: one for each data file, many in one Puffin file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tableformat.deletes.codecs.deletion_vector import encode_vector
from tableformat.deletes.positions import PositionSet
from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.content_file import PUFFIN, DataFile, DeleteFile, FileContent
from tableformat.metadata.puffin import deletion_vector_metadata, encode_puffin
from tableformat.storage.storage import write_bytes
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles, removed_on_failure
from tableformat.write.delete_files.delete_files import delete_file

PUFFIN_BYTES: Final = 32 * 1024 * 1024
"""The number of vectors in one Puffin file, which is kept in memory until it is written."""

_Vector = tuple[DataFile, PositionSet, bytes]


def write_deletion_vectors(context: WriteContext, deleted: Mapping[DataFile, PositionSet]) -> list[DeleteFile]:
    """FM-11: the deletion vector of every data file with deleted rows, in the given order. After a failure none is
    left.

    DA-7: the positions are *all* that row deletes have ever named in the data file, because readers ignore other
    position deletes if there is a vector (`write_row_deletes` collects them). Spec and partition are taken from the
    data file. Raises UnsupportedFeatureError below version 3, which has no deletion vectors.
    """
    if context.format_version < 3:
        raise UnsupportedFeatureError(
            f"a table of format version {context.format_version} does not support deletion vectors; write position "
            "delete files."
        )
    with removed_on_failure(context) as created:
        return [vector for batch in _batches(deleted) for vector in _write(context, created, batch)]


def _batches(deleted: Mapping[DataFile, PositionSet]) -> Iterator[list[_Vector]]:
    """The encoded vectors, in groups for one file."""
    batch: list[_Vector] = []
    size_bytes = 0
    for data, positions in deleted.items():
        if not positions:
            continue
        batch.append((data, positions, encode_vector(positions)))
        size_bytes += len(batch[-1][2])
        if size_bytes >= PUFFIN_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def _write(context: WriteContext, created: CreatedFiles, batch: Iterable[_Vector]) -> Iterator[DeleteFile]:
    """FM-11: smaller vectors come first in the file. One reader confuses a small vector with a large one before it."""
    in_order = list(batch)
    vectors = sorted(in_order, key=lambda vector: len(vector[2]))
    content, footer = encode_puffin(
        [(deletion_vector_metadata(data.file_path, len(positions)), blob) for data, positions, blob in vectors]
    )
    location = created.new_location("-deletes", None, (), extension="puffin")
    size_bytes = write_bytes(context.io, location, content)
    blobs = {data.file_path: blob for (data, _, _), blob in zip(vectors, footer.blobs, strict=True)}
    for data, positions, _ in in_order:
        blob = blobs[data.file_path]
        yield delete_file(
            location,
            size_bytes,
            content=FileContent.POSITION_DELETES,
            file_format=PUFFIN,
            spec_id=data.spec_id,
            partition=data.partition,
            record_count=len(positions),
            referenced_data_file=data.file_path,
            content_offset=blob.offset,
            content_size_bytes=blob.length_bytes,
        )
