"""The files of a table or directory that Spark knows, as the Java side's `SourceTables` describes them.

    {"path": "/lake/old", "format": "parquet"}
    {"name": "db.t", "format": "parquet", "columns": [...], "partition_columns": ["day"], "location": "...",
     "partitions": [{"values": {"day": "2026-01-31"}, "location": "..."}], "properties": {...}, "bucketed": false}

`partitions` is null where Spark's catalog does not keep them: directories say them (`day=2026-01-31`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pyiceberg.io import FileIO

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.storage.listing import list_files
from tableformat.storage.location import local_path

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN: Final = ("_", ".")
"""How names begin that Spark takes for no data."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file and what its directory says."""

    location: str
    values: Mapping[str, str | None]
    """Text by column; None is null."""


def source_files(source: Mapping[str, Any], io: FileIO, wanted: Mapping[str, str]) -> list[SourceFile]:
    """SP-35: the files of the partitions that have the `wanted` values, in the order of their locations.

    UnsupportedFeatureError for another format than Parquet, InvalidArgumentError for a directory without files
    and for a column that is no partition's.
    """
    if source["format"].lower() != "parquet":
        raise UnsupportedFeatureError(
            f"{_name(source)} has files of the format {source['format']}, and data files of a table are Parquet. Take "
            "its rows over by INSERT INTO ... SELECT or CREATE TABLE ... AS SELECT."
        )
    found = sorted(_files(source, io), key=lambda file: file.location)
    if not found and "path" in source and not _is_directory(source["path"]):
        raise InvalidArgumentError(f"there are no Parquet files at {source['path']}. Nothing was changed.")
    columns = sorted({name for file in found for name in file.values} | set(source.get("partition_columns", ())))
    unknown = sorted(set(wanted) - set(columns))
    if unknown:
        raise InvalidArgumentError(
            f"partition_filter: {_name(source)} is not partitioned by {', '.join(unknown)}. Its partition columns: "
            f"{', '.join(columns) or 'none'}."
        )
    return [file for file in found if all(file.values.get(name) == value for name, value in wanted.items())]


def _is_directory(location: str) -> bool:
    """PR-24: whether the place is there, and only empty. An object store knows of no empty directory."""
    path = local_path(location)
    return path is not None and Path(path).is_dir()


def has_partition(source: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """PR-24: whether the source, a table, has a partition of these values, with files or without."""
    return any(
        all(partition["values"].get(name) == value for name, value in wanted.items())
        for partition in source.get("partitions") or ()
    )


def _name(source: Mapping[str, Any]) -> str:
    return str(source.get("name") or source["path"])


def _files(source: Mapping[str, Any], io: FileIO) -> Iterator[SourceFile]:
    if source.get("partitions") is not None:
        for partition in source["partitions"]:
            values = {name: None if text == _NULL else text for name, text in partition["values"].items()}
            for location, _ in _listed(io, partition["location"]):
                yield SourceFile(location, values)
        return
    for location, inside in _listed(io, source["path"] if "path" in source else source["location"]):
        yield SourceFile(location, _values_of_directories(inside.split("/")[:-1], location))


def _listed(io: FileIO, directory: str) -> Iterator[tuple[str, str]]:
    """Locations of the files below, and each within the directory; without what Spark passes over."""
    path = local_path(directory)
    root = f"file://{path}" if path is not None else directory
    root = root.rstrip("/")
    for file in list_files(io, root):
        inside = file.location.removeprefix(f"{root}/")
        if file.size_bytes and not any(part.startswith(_HIDDEN) and "=" not in part for part in inside.split("/")):
            yield file.location, inside


def _values_of_directories(directories: list[str], location: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for directory in directories:
        name, is_value, text = directory.partition("=")
        if not is_value:
            raise InvalidArgumentError(
                f"{location}: its directory {directory!r} is no partition, such as day=2026-01-31, so it may belong to "
                "another table. Name the directory that has the files."
            )
        values[unquote(name)] = None if text == _NULL else unquote(text)
    return values
