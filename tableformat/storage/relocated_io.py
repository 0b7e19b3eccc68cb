"""Reads a table that was moved or copied, whose metadata names files at their former location.

Iceberg metadata holds full locations. A table that was copied to another directory, downloaded, or written with
locations relative to a working directory still has every file at the same place *below its own directory*, so it is
enough to exchange the prefix. Locations inside the metadata stay as they are written: position deletes match data files
by the stated path (DA-10), only opening a file goes to the actual one.
"""

from __future__ import annotations

from pyiceberg.io import FileIO, InputFile, OutputFile

from tableformat.storage.location import one_spelling


class RelocatedFileIO(FileIO):
    """A FileIO that opens `<stated>/...` at `<actual>/...`, however it is spelt, and the rest where it says; picklable.

    `read_table_metadata` uses it when the files that the metadata names are not at the stated place but are next to the
    metadata file.
    """

    def __init__(self, inner: FileIO, stated: str, actual: str) -> None:
        super().__init__(inner.properties)
        self.inner = inner
        self.stated_directory = one_spelling(stated).rstrip("/")
        self.actual_directory = actual.rstrip("/")

    def actual(self, location: str) -> str:
        """Where the file that the metadata calls `location` is."""
        inside = one_spelling(location).removeprefix(self.stated_directory + "/")
        return f"{self.actual_directory}/{inside}" if inside != one_spelling(location) else location

    def new_input(self, location: str) -> InputFile:
        return self.inner.new_input(self.actual(location))

    def new_output(self, location: str) -> OutputFile:
        return self.inner.new_output(self.actual(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self.inner.delete(self.actual(location) if isinstance(location, str) else location)
