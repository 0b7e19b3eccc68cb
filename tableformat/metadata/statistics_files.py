"""PyIceberg's models of table statistics, extended to blobs of every type.

The types of blobs in a Puffin file are an open list: each engine may write its own. PyIceberg 0.12 knows two types and
refuses the whole table if a statistics file has another. This module rebuilds its models in this process, with any text
as the type. Blobs are written back unchanged.
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
"""The models that contain blobs, each after its parts."""
_REST: Final = "pyiceberg.catalog.rest"
"""Its responses contain table metadata. If it is imported later, it uses the extended models."""


@cache
def accept_every_blob_type() -> None:
    """FM-3: to be called before metadata is parsed. The change is permanent."""
    BlobMetadata.model_fields["type"].annotation = str
    for model in _HOLDERS:
        model.model_rebuild(force=True)
    if _REST in sys.modules:
        sys.modules[_REST].TableResponse.model_rebuild(force=True)
