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
from typing import Any

from pyiceberg.io import FileIO

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.storage.hive_files import NULL, files_below, values_of_directories
from tableformat.storage.location import local_path


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
            values = {name: None if text == NULL else text for name, text in partition["values"].items()}
            for location, _ in files_below(io, partition["location"]):
                yield SourceFile(location, values)
        return
    for location, inside in files_below(io, source["path"] if "path" in source else source["location"]):
        yield SourceFile(location, values_of_directories(inside, location))
