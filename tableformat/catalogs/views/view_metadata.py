"""Metadata of views in Apache Iceberg's view specification: new views and changes of their definition."""

from __future__ import annotations

import gzip
import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.view.metadata import (
    SQLViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
)

from tableformat.errors import CorruptFileError, InvalidArgumentError
from tableformat.storage.inflating import Inflater

HISTORY_SIZE: Final = "version.history.num-entries"
DROP_DIALECT: Final = "replace.drop-dialect.allowed"
_HISTORY_SIZE_DEFAULT: Final = 10
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDefinition:
    """The definition of a view by one engine."""

    sql: str
    """The query as the user wrote it."""
    dialect: str
    """The SQL dialect of the query, such as "spark"."""
    schema: Schema
    """The columns of the view, with their comments; ids are placeholders."""
    default_namespace: tuple[str, ...]
    """The namespace of tables that the query names without a namespace."""
    default_catalog: str | None = None
    """The catalog of tables that the query names without a catalog; None is the catalog of the view."""
    summary: Mapping[str, str] = field(default_factory=dict)
    """Notes of the engine about this version."""


def new_metadata(definition: ViewDefinition, location: str, properties: Mapping[str, str]) -> ViewMetadata:
    """The first version of a view."""
    version = new_version(definition, version_id=1, schema_id=0)
    return ViewMetadata.model_validate(
        {
            "view-uuid": str(uuid.uuid4()),
            "format-version": 1,
            "location": location,
            "schemas": [fresh_schema(definition.schema, schema_id=0)],
            "current-version-id": version.version_id,
            "versions": [version],
            "version-log": [_logged(version, version.timestamp_ms)],
            "properties": dict(properties),
        }
    )


def replaced_metadata(
    metadata: ViewMetadata, definition: ViewDefinition, properties: Mapping[str, str]
) -> ViewMetadata:
    """SQ-27: the view with another definition and these properties. If the view has a version with the same definition,
    that version becomes the current one, and no version is added.

    Raises InvalidArgumentError if the new version would lose the SQL of an engine that the current one has.
    """
    _refuse_lost_dialects(metadata, definition, properties)
    schemas = list(metadata.schemas)
    fresh = fresh_schema(definition.schema, schema_id=max(each.schema_id for each in schemas) + 1)
    schema = next((each for each in schemas if each.as_struct() == fresh.as_struct()), fresh)
    if schema is fresh:
        schemas.append(fresh)
    made = new_version(
        definition, version_id=max(each.version_id for each in metadata.versions) + 1, schema_id=schema.schema_id
    )
    version = next((each for each in metadata.versions if _is_same(each, made)), made)
    log = list(metadata.version_log)
    if version.version_id != metadata.current_version_id:
        log.append(_logged(version, made.timestamp_ms))
    versions = retained_versions([*metadata.versions, *([made] if version is made else [])], version, properties)
    known = {each.version_id for each in versions}
    first = next((place + 1 for place in reversed(range(len(log))) if log[place].version_id not in known), 0)
    return metadata.model_copy(
        update={
            "schemas": schemas,
            "current_version_id": version.version_id,
            "versions": versions,
            "version_log": log[first:],
            "properties": dict(properties),
        }
    )


def _refuse_lost_dialects(metadata: ViewMetadata, definition: ViewDefinition, properties: Mapping[str, str]) -> None:
    """SQ-27: a view that other engines can read stays readable for them."""
    current = next(each for each in metadata.versions if each.version_id == metadata.current_version_id)
    dialects = {each.root.dialect.lower() for each in current.representations} - {definition.dialect.lower()}
    if dialects and properties.get(DROP_DIALECT, "false").lower() != "true":
        raise InvalidArgumentError(
            f"the view also has SQL for {', '.join(sorted(dialects))}, which a replacement in {definition.dialect} "
            f"would remove. Nothing was changed. To remove it, set the view property {DROP_DIALECT} to true."
        )


def new_version(definition: ViewDefinition, *, version_id: int, schema_id: int) -> ViewVersion:
    """The definition as a version of a view."""
    query = SQLViewRepresentation(type="sql", sql=definition.sql, dialect=definition.dialect)
    return ViewVersion.model_validate(
        {
            "version-id": version_id,
            "schema-id": schema_id,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "summary": dict(definition.summary),
            "representations": [ViewRepresentation(query)],
            "default-catalog": definition.default_catalog,
            "default-namespace": definition.default_namespace,
        }
    )


def fresh_schema(schema: Schema, *, schema_id: int) -> Schema:
    """The schema with ids from 1 on instead of placeholders."""
    return Schema(*assign_fresh_schema_ids(schema).fields, schema_id=schema_id)


def view_bytes(metadata: ViewMetadata) -> bytes:
    """The metadata file, compressed, which is Iceberg's default for views."""
    return gzip.compress(metadata.model_dump_json(by_alias=True, exclude_none=True).encode())


def parse_view(data: bytes, location: str) -> ViewMetadata:
    """Parse a metadata file of any writer. Raises CorruptFileError if it is not one."""
    try:
        return ViewMetadata.model_validate_json(Inflater(location).gunzipped(data))
    except (ValidationError, ValueError, OSError, EOFError, zlib.error) as error:
        raise CorruptFileError(location, f"it is not a metadata file of a view ({error}).") from error


def _logged(version: ViewVersion, timestamp_ms: int) -> ViewHistoryEntry:
    return ViewHistoryEntry.model_validate({"version-id": version.version_id, "timestamp-ms": timestamp_ms})


def _is_same(version: ViewVersion, made: ViewVersion) -> bool:
    """Whether both versions are the same apart from id and time."""
    of_now = {"version_id": made.version_id, "timestamp_ms": made.timestamp_ms}
    return version.model_copy(update=of_now) == made


def retained_versions(
    versions: Sequence[ViewVersion], current: ViewVersion, properties: Mapping[str, str]
) -> list[ViewVersion]:
    """The newest versions, as many as the view's property allows, including the current one."""
    text = properties.get(HISTORY_SIZE, str(_HISTORY_SIZE_DEFAULT))
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgumentError(f"the property {HISTORY_SIZE} must be a whole number above 0, not {text!r}.")
    others = [each for each in versions if each.version_id != current.version_id]
    newest = sorted(others, key=lambda each: each.version_id)[max(0, len(others) - int(text) + 1) :]
    return sorted([*newest, current], key=lambda each: each.version_id)
