"""Metadata of views, as Apache Iceberg's view specification has it: what a view is, and what a change makes of it."""

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
    """A view as one engine says it."""

    sql: str
    """The query, as it was written."""
    dialect: str
    """Whose SQL that is, such as "spark"."""
    schema: Schema
    """The columns of the view, with their comments; ids are placeholders."""
    default_namespace: tuple[str, ...]
    """Where tables lie that the query names without a namespace."""
    default_catalog: str | None = None
    """The catalog of tables that the query names without one; None: the catalog that has the view."""
    summary: Mapping[str, str] = field(default_factory=dict)
    """What the engine notes about this version."""


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
    """SQ-27: the view with another definition and these properties. A definition that the view had before becomes its
    version again; one that it has adds none.

    Raises InvalidArgumentError where the new version would lack the SQL of an engine that the current one has.
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
    versions = _retained([*metadata.versions, *([made] if version is made else [])], version, properties)
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
            f"the view has SQL for {', '.join(sorted(dialects))} as well, which a replacement in {definition.dialect} "
            f"would lose. Nothing was changed. Set the view's property {DROP_DIALECT} to true to lose it."
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
    """With ids from 1 on in place of placeholders."""
    return Schema(*assign_fresh_schema_ids(schema).fields, schema_id=schema_id)


def view_bytes(metadata: ViewMetadata) -> bytes:
    """A metadata file, compressed, as Iceberg writes those of views by default."""
    return gzip.compress(metadata.model_dump_json(by_alias=True, exclude_none=True).encode())


def parse_view(data: bytes, location: str) -> ViewMetadata:
    """A metadata file of any writer. CorruptFileError where it is none."""
    try:
        return ViewMetadata.model_validate_json(Inflater(location).gunzipped(data))
    except (ValidationError, ValueError, OSError, EOFError, zlib.error) as error:
        raise CorruptFileError(location, f"it is no metadata file of a view ({error}).") from error


def _logged(version: ViewVersion, timestamp_ms: int) -> ViewHistoryEntry:
    return ViewHistoryEntry.model_validate({"version-id": version.version_id, "timestamp-ms": timestamp_ms})


def _is_same(version: ViewVersion, made: ViewVersion) -> bool:
    """The same view, whenever it was made."""
    of_now = {"version_id": made.version_id, "timestamp_ms": made.timestamp_ms}
    return version.model_copy(update=of_now) == made


def _retained(
    versions: Sequence[ViewVersion], current: ViewVersion, properties: Mapping[str, str]
) -> list[ViewVersion]:
    """The newest versions, as many as the view's owner wants, and the current one among them."""
    text = properties.get(HISTORY_SIZE, str(_HISTORY_SIZE_DEFAULT))
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgumentError(f"the property {HISTORY_SIZE} is a whole number from 1 on, not {text!r}.")
    others = [each for each in versions if each.version_id != current.version_id]
    newest = sorted(others, key=lambda each: each.version_id)[max(0, len(others) - int(text) + 1) :]
    return sorted([*newest, current], key=lambda each: each.version_id)
