"""Which row deletes the clients of a server can read (SV-15).

format version 2    position delete files     every client reads them
format version 3    deletion vectors          some clients, such as Trino 476, do not
"""

from __future__ import annotations

from collections.abc import Collection

from pyiceberg.table.metadata import TableMetadata

from tableformat.commit.change import KEYED_KINDS
from tableformat.metadata.content_file import DeleteKind
from tableformat.properties import SERVE_DELETE_FORMAT, serve_delete_format

_VECTORS_SINCE = 3


def unreadable_reason(metadata: TableMetadata, kinds: Collection[DeleteKind], of_server: str) -> str | None:
    """Why clients that read only position delete files cannot read a snapshot with these kinds of deletes. None if they
    can, or if the clients read deletion vectors as well. `of_server` is the delete format of tables without the
    property.

    Iceberg allows no new position delete file in version 3, so a conversion there writes deletion vectors.
    """
    wanted = serve_delete_format(metadata.properties, of_server)
    if wanted != "position-deletes" or metadata.format_version < _VECTORS_SINCE:
        return None
    if DeleteKind.DELETION_VECTOR not in kinds and KEYED_KINDS.isdisjoint(kinds):
        return None
    return (
        f"the table cannot be served without deletion vectors: it has format version {metadata.format_version}, where "
        f"Iceberg allows no new position delete files, and the delete format of its clients is {wanted}. Compact it "
        "with rewrite_all, which leaves no deletes. Or set the property "
        f"{SERVE_DELETE_FORMAT} to any if its clients read deletion vectors."
    )
