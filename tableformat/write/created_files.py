"""Names new files, and removes them if the operation that creates them fails."""

from __future__ import annotations

import contextlib
import itertools
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from pyiceberg.io import FileIO

from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext


class CreatedFiles:
    """The files of one operation. Thread-safe."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._writer_id = uuid.uuid4()
        self._numbers = itertools.count()
        self._locations: list[str] = []
        self._lock = threading.Lock()

    def new_location(
        self, kind: str, spec_id: int | None, partition: tuple[Any, ...], *, extension: str = "parquet"
    ) -> str:
        """FM-1: a location that no other writer uses. `kind` is a suffix for the kind of the file.

        Without a spec the file belongs to no partition, for example a file with deletion vectors of several.
        """
        with self._lock:
            name = f"{next(self._numbers):05d}-{self._writer_id}{kind}.{extension}"
            location = self._context.new_file_location(name, spec_id, partition)
            self._locations.append(location)
        return location

    def remove(self, io: FileIO) -> None:
        for location in self._locations:
            delete_if_present(io, location)
        self._locations = []


@contextlib.contextmanager
def removed_on_failure(context: WriteContext) -> Iterator[CreatedFiles]:
    """Removes the files created inside the block if it raises any exception."""
    created = CreatedFiles(context)
    try:
        yield created
    except BaseException:
        created.remove(context.io)
        raise
