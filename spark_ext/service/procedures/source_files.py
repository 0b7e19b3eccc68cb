"""The files of a table or directory that Spark can read, as described by `SourceTables` of the Java side.

    {"path": "/lake/old", "format": "parquet"}
    {"name": "db.t", "format": "parquet", "columns": [...], "partition_columns": ["day"], "location": "...",
     "partitions": [{"values": {"day": "2026-01-31"}, "location": "..."}], "properties": {...}, "bucketed": false}

`partitions` is null if Spark's catalog does not store them. They then follow from the directories (`day=2026-01-31`).
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
"""Prefixes of file and directory names that Spark ignores."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file and the partition values from its directory."""

    location: str
    values: Mapping[str, str | None]
    """Text by column; None is null."""


def source_files(source: Mapping[str, Any], io: FileIO, wanted: Mapping[str, str]) -> list[SourceFile]:
    """SP-35: the files of the partitions with the `wanted` values, ordered by location.

    Raises UnsupportedFeatureError for a format other than Parquet. Raises InvalidArgumentError for a directory without
    files, and for a column that is not a partition column.
    """
    if source["format"].lower() != "parquet":
        raise UnsupportedFeatureError(
            f"{_name(source)} has files of the format {source['format']}, but data files of a table must be Parquet. "
            "Copy its rows with INSERT INTO ... SELECT or CREATE TABLE ... AS SELECT."
        )
    found = sorted(_files(source, io), key=lambda file: file.location)
    if not found and "path" in source and not _is_directory(source["path"]):
        raise InvalidArgumentError(f"no Parquet files exist at {source['path']}. Nothing was changed.")
    columns = sorted({name for file in found for name in file.values} | set(source.get("partition_columns", ())))
    unknown = sorted(set(wanted) - set(columns))
    if unknown:
        raise InvalidArgumentError(
            f"partition_filter: {_name(source)} is not partitioned by {', '.join(unknown)}. Its partition columns: "
            f"{', '.join(columns) or 'none'}."
        )
    return [file for file in found if all(file.values.get(name) == value for name, value in wanted.items())]


def _is_directory(location: str) -> bool:
    """PR-24: whether the location is an existing directory, which may be empty. An object store has no empty
    directories."""
    path = local_path(location)
    return path is not None and Path(path).is_dir()


def has_partition(source: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """PR-24: whether the source table has a partition with these values, with or without files."""
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
    """Locations of the files below the directory, each with its relative path. Files that Spark ignores are omitted."""
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
                f"{location}: its directory {directory!r} is not a partition, such as day=2026-01-31, so it may "
                "belong to another table. Pass the directory that has the files."
            )
        values[unquote(name)] = None if text == _NULL else unquote(text)
    return values
