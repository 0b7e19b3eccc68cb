"""The next metadata of a table: the file is written first, then the catalog is set to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier

from tableformat.catalogs.table_locations import Swap
from tableformat.commit.history_change import refuse_rewritten_parents
from tableformat.commit.multi_table_commit import TableRequest
from tableformat.errors import StorageError
from tableformat.storage.storage import delete_if_present


@dataclass(frozen=True, slots=True)
class NextVersion:
    """The version of a table after a commit."""

    current: Table
    metadata: TableMetadata
    """The current metadata if the table stays unchanged."""
    io: FileIO
    location: str

    @property
    def is_new(self) -> bool:
        """Whether a file has to be written."""
        return self.metadata is not self.current.metadata

    @property
    def swap(self) -> Swap:
        """The change for the catalog."""
        return Swap(self.current.name(), self.current.metadata_location, self.location)

    @property
    def response(self) -> CommitTableResponse:
        """The response after the change."""
        return CommitTableResponse.model_validate({"metadata": self.metadata, "metadata-location": self.location})


def on_newest(request: TableRequest, load: Callable[[Identifier], Table]) -> TableRequest:
    """The request for the current state of its table. Raises CommitFailedException if the history was written again
    since the request was made (CP-91)."""
    current = load(request.table.name())
    refuse_rewritten_parents(request.table.metadata, current.metadata, request.updates)
    return replace(request, table=current)


@contextmanager
def removing_what_is_not_named(versions: Sequence[NextVersion]) -> Iterator[None]:
    """If the block fails, and the catalog certainly names none of the new files, remove them (CP-18)."""
    try:
        yield
    except (CommitFailedException, StorageError) as error:
        if not isinstance(error, StorageError) or error.nothing_changed:
            for each in versions:
                delete_if_present(each.io, each.location)
        raise
