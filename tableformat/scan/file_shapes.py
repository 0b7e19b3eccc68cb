"""Projections from the columns of files to the columns of a scan, computed once for all files of one schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.parquet.parquet_columns import LeafColumn
from tableformat.parquet.parquet_file import OpenedFile
from tableformat.parquet.projection import FileProjection


@dataclass(frozen=True, slots=True, eq=False)
class FileShape:
    """The common properties of files that are projected together."""

    leaves: Mapping[int, LeafColumn]
    """Primitive columns by field id."""
    projection: FileProjection
    """Its errors name the first file of the shape."""


@dataclass(frozen=True, slots=True, eq=False)
class _KnownSchema:
    stored: pa.Schema
    """The schema as the files store it. It determines the leaves, together with the name mapping that all files share.
    """
    leaves: Mapping[int, LeafColumn]
    shapes: dict[tuple[tuple[int, Any], ...], FileShape] = field(default_factory=dict)
    """Keyed by the constants that the projection uses."""


class FileShapes:
    """The shapes of the files that one scan has met so far.

    Thread-safe: if two threads compute one shape at the same moment, it is computed twice, which only costs time.
    """

    def __init__(self, wanted: Schema, arrow_schema: pa.Schema) -> None:
        """`arrow_schema` is the Arrow form of `wanted`."""
        self._wanted = wanted
        self._arrow_schema = arrow_schema
        self._known: list[_KnownSchema] = []

    def of(self, file: OpenedFile, constants: Mapping[int, Any]) -> FileShape:
        """The shape of a file with these values of partition columns, by field id.

        Raises CorruptFileError, with the name of the file, if its columns cannot belong to the table.
        """
        known = self._schema_of(file)
        shape = known.shapes.get(())
        if shape is not None:
            return shape
        key = tuple(constants.items())
        shape = known.shapes.get(key)
        if shape is None:
            shape = FileShape(known.leaves, self.projection_of(file, constants))
            # A projection that uses no constants is valid for every file of the schema.
            known.shapes[key if shape.projection.takes_constants else ()] = shape
        return shape

    def projection_of(self, file: OpenedFile, constants: Mapping[int, Any]) -> FileProjection:
        """The projection of this file only, whose errors name it."""
        return FileProjection.of(file.schema, self._wanted, file.location, constants, result=self._arrow_schema)

    def _schema_of(self, file: OpenedFile) -> _KnownSchema:
        for known in self._known:
            if known.stored.equals(file.stored_schema, check_metadata=True):
                return known
        self._known.append(_KnownSchema(file.stored_schema, file.leaves))
        return self._known[-1]
