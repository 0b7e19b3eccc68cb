"""PyIceberg's models of table statistics, for blobs of every type.

Which types of blobs a Puffin file has is an open list: each engine may write its own. PyIceberg 0.12 knows two, and
refuses the whole table where a statistics file has another. Its models are made anew here with any text as the type,
in this process; what is read is written as it was.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Final

from pydantic import BaseModel
from pyiceberg.table import CommitTableRequest, CommitTableResponse
from pyiceberg.table.metadata import TableMetadataV1, TableMetadataV2, TableMetadataV3, TableMetadataWrapper
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.table.update import SetStatisticsUpdate

_HOLDERS: Final[tuple[type[BaseModel], ...]] = (
    *(BlobMetadata, StatisticsFile, TableMetadataV1, TableMetadataV2, TableMetadataV3, TableMetadataWrapper),
    *(SetStatisticsUpdate, CommitTableRequest, CommitTableResponse),
)
"""What has blobs in it, each after what it consists of."""
_REST: Final = "pyiceberg.catalog.rest"
"""Its answers hold table metadata; imported later it takes the models as they are then."""


@cache
def accept_every_blob_type() -> None:
    """FM-3: to be called before metadata is parsed; what it changes stays changed."""
    BlobMetadata.model_fields["type"].annotation = str
    for model in _HOLDERS:
        model.model_rebuild(force=True)
    if _REST in sys.modules:
        sys.modules[_REST].TableResponse.model_rebuild(force=True)
