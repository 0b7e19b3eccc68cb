"""Where the tables of a lake have their metadata: each in a directory of its own."""

from __future__ import annotations

from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.io import FileIO
from sqlalchemy import Engine, select

from tableformat.errors import AlreadyExistsError, CorruptFileError
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.owned_files import table_uuid_of
from tableformat.storage.location import one_spelling


def is_taken(engine: Engine, location: str) -> bool:
    """LK-18: whether the metadata of a table of this database lies in the directory: one that was renamed."""
    there = IcebergTables.metadata_location.startswith(f"{location}/", autoescape=True)
    with engine.connect() as connection:
        return connection.execute(select(IcebergTables.table_name).where(there).limit(1)).first() is not None


def refuse_second_name(engine: Engine, name: tuple[str, str], metadata_location: str, io: FileIO) -> None:
    """LK-25: AlreadyExistsError where this database has the table of a metadata file under another name than this one,
    a namespace and a table: with its metadata in the same directory, and the same uuid.

    A table that was dropped may have left its files where one of its name lies now.
    """
    columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
    with engine.connect() as connection:
        known = connection.execute(select(*columns)).all()
    for namespace, table, location in known:
        if location is None or (namespace, table) == name or _directory(location) != _directory(metadata_location):
            continue
        if _are_of_one_table(metadata_location, location, io):
            other = identifier_text((*namespace.split("."), table))
            raise AlreadyExistsError(
                f"{metadata_location} is metadata of {other}, which this catalog has. Nothing was changed: of two "
                f"names of one table each would remove files that the other needs. rename_table() gives {other} "
                "another name, a tag and time travel show what it was, and relocate(to=...) copies it."
            )


def _are_of_one_table(metadata_location: str, known: str, io: FileIO) -> bool:
    """A table whose own metadata file is gone removes nothing, and may come back by an older one."""
    given = table_uuid_of(io, metadata_location)
    try:
        return given is not None and given == table_uuid_of(io, known)
    except CorruptFileError:
        return False


def _directory(metadata_location: str) -> str:
    return one_spelling(metadata_location).rpartition("/")[0]
