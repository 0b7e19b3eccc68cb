"""Metadata directories of the tables of a lake: each table has its own."""

from __future__ import annotations

from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.io import FileIO
from sqlalchemy import Engine, select

from tableformat.errors import AlreadyExistsError, CorruptFileError
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.owned_files import table_uuid_of
from tableformat.storage.location import one_spelling


def is_taken(engine: Engine, location: str) -> bool:
    """LK-18: whether a table of this database has its metadata in the directory. Renamed tables keep theirs."""
    there = IcebergTables.metadata_location.startswith(f"{location}/", autoescape=True)
    with engine.connect() as connection:
        return connection.execute(select(IcebergTables.table_name).where(there).limit(1)).first() is not None


def refuse_second_name(engine: Engine, name: tuple[str, str], metadata_location: str, io: FileIO) -> None:
    """LK-25: raises AlreadyExistsError if this database has the table of a metadata file under another name than
    `name`, a namespace and a table. It is the same table if its metadata is in the same directory and has the same
    uuid.

    The uuid is compared because a dropped table may have left its files in a directory that another table uses now.
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
                f"{metadata_location} is metadata of {other}, which this catalog already has. Nothing was changed. "
                f"With two names, each table would remove files that the other one needs. Instead, rename {other} "
                "with rename_table(), read its earlier states through a tag or time travel, or copy it with "
                "relocate(to=...)."
            )


def _are_of_one_table(metadata_location: str, known: str, io: FileIO) -> bool:
    """Whether both files have the same table uuid.

    False if the known file does not exist: such a table removes no files, and may be registered by an older metadata
    file.
    """
    given = table_uuid_of(io, metadata_location)
    try:
        return given is not None and given == table_uuid_of(io, known)
    except CorruptFileError:
        return False


def _directory(metadata_location: str) -> str:
    return one_spelling(metadata_location).rpartition("/")[0]
