"""Writes one Parquet file with options from table properties; reports its size while writing, and its metrics at the
end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from tableformat.errors import InvalidArgumentError
from tableformat.iceberg_properties import PARQUET_CODECS
from tableformat.parquet.bloom_filters.filter_options import FilterOption, arrow_options
from tableformat.properties import COMPRESSION_CODEC, COMPRESSION_CODEC_DEFAULT, COMPRESSION_LEVEL
from tableformat.storage.storage import open_output, writing

_SAMPLE_ROWS: Final = 512
_SAMPLES: Final = 3
_DISTINCT_SHARE: Final = 0.75
"""Columns of fixed width whose samples have more distinct values are written without a dictionary. A dictionary would
make such files larger (by a quarter, for random timestamps) and double the time to write them."""
_WRITE_BATCH_ROWS_MAX: Final = 1_024
_PAGE_BYTES: Final = 1024 * 1024
"""Parquet's target size of a page. Parquet checks the size of a page after each batch of values, so a batch must not be
larger."""
_WIDER: Final = 8
"""The factor by which pages may exceed their size before rows need a file with smaller batches."""


@dataclass(frozen=True, slots=True)
class WrittenParquet:
    """The size and metrics of a finished file."""

    metadata: pq.FileMetaData
    size_bytes: int


class ParquetOutput:
    """An open file; `finish` or `abandon` closes it. The caller removes a failed file."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        schema: pa.Schema,
        properties: Mapping[str, str],
        *,
        key_value_metadata: Mapping[bytes, bytes] | None = None,
        dictionary_columns: Sequence[str] | bool = True,
        write_page_index: bool = False,
        bloom_filters: Sequence[FilterOption] = (),
        first_rows: pa.RecordBatch | pa.Table | None = None,
    ) -> None:
        """`key_value_metadata` goes to the footer. The Arrow schema is not stored, because Iceberg's field ids are
        sufficient. MT-63: the width of `first_rows` decides how many values are written to a page at a time. FM-27:
        their number decides the size of `bloom_filters`."""
        self._write_batch_rows = _WRITE_BATCH_ROWS_MAX if first_rows is None else _write_batch_rows(first_rows)
        self._location = location
        self._exits = contextlib.ExitStack()
        self._sink = self._exits.enter_context(open_output(io, location))
        self._finished: list[pq.FileMetaData] = []
        self.row_count = 0
        codec = compression_codec(properties)
        dictionaries = dictionary_columns if isinstance(dictionary_columns, bool) else list(dictionary_columns)
        try:
            # The first bytes are written here.
            with writing(self._location):
                self._writer = pq.ParquetWriter(
                    self._sink,
                    schema,
                    compression="none" if codec == "uncompressed" else codec,
                    compression_level=_compression_level(properties, codec),
                    use_dictionary=dictionaries,
                    write_page_index=write_page_index,
                    write_page_checksum=True,
                    bloom_filter_options=arrow_options(bloom_filters, 0 if first_rows is None else len(first_rows)),
                    store_schema=False,
                    write_batch_size=self._write_batch_rows,
                    metadata_collector=self._finished,
                )
            if key_value_metadata:
                # Without the stored Arrow schema, pyarrow does not write the metadata of the schema either.
                self._writer.add_key_value_metadata(dict(key_value_metadata))
        except BaseException:
            self._exits.close()
            raise

    def write_row_group(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Write all rows as one row group."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        with writing(self._location):
            self._writer.write_table(table, row_group_size=max(len(table), 1))
        self.row_count += len(table)

    def has_room_in_pages(self, rows: pa.RecordBatch | pa.Table) -> bool:
        """Whether the rows are about as narrow as the first ones. Pages of much wider rows would be too large."""
        return self._write_batch_rows <= _WIDER * _write_batch_rows(rows)

    @property
    def size_bytes(self) -> int:
        """The size of the row groups so far, in bytes."""
        size: int = self._sink.tell()
        return size

    def finish(self) -> WrittenParquet:
        try:
            with writing(self._location):
                self._writer.close()
            size = self._sink.tell()
        finally:
            self._exits.close()
        return WrittenParquet(self._finished[0], size)

    def abandon(self) -> None:
        """Close the file after a failure elsewhere, so that it can be removed."""
        # RuntimeError: pyarrow needs the footer, which a full disk did not store.
        with contextlib.suppress(pa.ArrowException, OSError, RuntimeError):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._exits.close()


def _write_batch_rows(rows: pa.RecordBatch | pa.Table) -> int:
    """The number of values of the widest column that fill a page."""
    widest = max((column.nbytes for column in rows.columns), default=0) / max(rows.num_rows, 1)
    return max(1, min(_WRITE_BATCH_ROWS_MAX, int(_PAGE_BYTES / max(widest, 1))))


def compression_codec(properties: Mapping[str, str]) -> str:
    """Raises InvalidArgumentError for an unknown codec."""
    codec = properties.get(COMPRESSION_CODEC, COMPRESSION_CODEC_DEFAULT).lower()
    if codec not in PARQUET_CODECS:
        raise InvalidArgumentError(
            f"table property {COMPRESSION_CODEC} must be one of {', '.join(PARQUET_CODECS)}, not {codec!r}."
        )
    return codec


def _compression_level(properties: Mapping[str, str], codec: str) -> int | None:
    """None for the default of the codec. Raises InvalidArgumentError for a level that the codec does not have."""
    text = properties.get(COMPRESSION_LEVEL)
    if text is None or codec == "uncompressed" or not pa.Codec.supports_compression_level(codec):
        return None
    lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10 and lowest <= int(text) <= highest):
        raise InvalidArgumentError(
            f"table property {COMPRESSION_LEVEL} must be a level of {codec}, {lowest} to {highest}, not {text!r}."
        )
    return int(text)


class DictionaryChoice:
    """The leaf columns, in Parquet's names, that a dictionary is likely to make smaller.

    Samples of the first rows of an operation decide it for all of its files.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns: list[str] | None = None

    def columns(self, rows: pa.RecordBatch) -> list[str]:
        if self._columns is None:
            chosen: list[str] = []
            for position, field in enumerate(self._schema):
                if not _has_fixed_width(field.type) or _repeats(rows.column(position)):
                    chosen += _leaf_paths(field.name, field.type)
            self._columns = chosen
        return self._columns


def _has_fixed_width(data_type: pa.DataType) -> bool:
    return any(check(data_type) for check in (pa.types.is_integer, pa.types.is_temporal, pa.types.is_floating))


def _repeats(column: pa.Array) -> bool:
    """Whether adjacent rows share values. A dictionary belongs to one row group, so samples are runs of rows."""
    sample = column
    if len(column) > _SAMPLES * _SAMPLE_ROWS:
        step = (len(column) - _SAMPLE_ROWS) // (_SAMPLES - 1)
        runs = [column.slice(step * i, _SAMPLE_ROWS) for i in range(_SAMPLES)]
        sample = pa.chunked_array(runs, column.type)
    return bool(pc.count_distinct(sample).as_py() <= _DISTINCT_SHARE * (len(sample) - sample.null_count))


def _leaf_paths(path: str, data_type: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(data_type):
        for child in data_type:
            yield from _leaf_paths(f"{path}.{child.name}", child.type)
    elif pa.types.is_map(data_type):
        yield from _leaf_paths(f"{path}.key_value.key", data_type.key_type)
        yield from _leaf_paths(f"{path}.key_value.value", data_type.item_type)
    elif pa.types.is_large_list(data_type) or pa.types.is_list(data_type):
        yield from _leaf_paths(f"{path}.list.element", data_type.value_type)
    else:
        yield path


def entry_metrics(metrics: Any) -> dict[str, Any]:
    """The fields of a manifest entry from a file's metrics."""
    return {
        "record_count": metrics.record_count,
        "column_sizes": metrics.column_sizes,
        "value_counts": metrics.value_counts,
        "null_value_counts": metrics.null_value_counts,
        "nan_value_counts": metrics.nan_value_counts,
        "lower_bounds": metrics.lower_bounds,
        "upper_bounds": metrics.upper_bounds,
        "split_offsets": metrics.split_offsets,
    }
