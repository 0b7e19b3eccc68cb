"""Checks whether a Parquet file has page checksums: pyarrow verifies existing ones and does not report missing ones.

The header of a page is a Thrift struct in the compact protocol. The checksum is its optional field 4, after three
required numbers. Source: Parquet format, `PageHeader`; Apache Thrift, "Compact protocol encoding".
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

_HEADER_BYTES_MAX: Final = 32
"""The first four numbers of a page header take at most 4 * (1 + 5) bytes."""
_NEXT_NUMBER: Final = 0x15
"""Field header of the compact protocol: the field after the last one, a 32-bit number."""


def has_page_checksums(metadata: pq.FileMetaData, source: pa.NativeFile) -> bool:
    """Whether the first page of the file has a checksum. Writers add one to every page or to none. True for a file
    without pages. Moves the position of `source`."""
    if metadata.num_row_groups == 0 or metadata.num_columns == 0:
        return True
    chunk = metadata.row_group(0).column(0)
    offset = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    source.seek(offset)
    return states_checksum(bytes(source.read(_HEADER_BYTES_MAX)))


def states_checksum(page_header: bytes) -> bool:
    """Whether the header of a page has field 4: type, sizes before and after compression, then the checksum."""
    position = 0
    for _ in range(3):
        if page_header[position : position + 1] != bytes([_NEXT_NUMBER]):
            return False
        position += 1
        while position < len(page_header) and page_header[position] & 0x80:
            position += 1
        position += 1
    return page_header[position : position + 1] == bytes([_NEXT_NUMBER])
