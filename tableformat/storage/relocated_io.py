"""Reads a table that was moved or copied, and whose metadata names the former locations of its files.

Iceberg metadata holds full locations. After a copy to another directory, a download, or a write with relative
locations, every file has the same path *below the directory of the table*. So it is enough to replace the prefix.
Locations in metadata are not changed: position deletes match data files by the path in metadata (DA-10), and only
opening a file uses the actual path.
"""

from __future__ import annotations

from pyiceberg.io import FileIO, InputFile, OutputFile

from tableformat.storage.location import one_spelling


class RelocatedFileIO(FileIO):
    """A FileIO that opens `<stated>/...` at `<actual>/...` in any spelling, and other locations unchanged. Can be
    pickled.

    `read_table_metadata` uses it if the files that the metadata names are next to the metadata file and not at the
    stated location.
    """

    def __init__(self, inner: FileIO, stated: str, actual: str) -> None:
        super().__init__(inner.properties)
        self.inner = inner
        self.stated_directory = one_spelling(stated).rstrip("/")
        self.actual_directory = actual.rstrip("/")

    def actual(self, location: str) -> str:
        """The actual location of the file that the metadata calls `location`."""
        inside = one_spelling(location).removeprefix(self.stated_directory + "/")
        return f"{self.actual_directory}/{inside}" if inside != one_spelling(location) else location

    def new_input(self, location: str) -> InputFile:
        return self.inner.new_input(self.actual(location))

    def new_output(self, location: str) -> OutputFile:
        return self.inner.new_output(self.actual(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self.inner.delete(self.actual(location) if isinstance(location, str) else location)
