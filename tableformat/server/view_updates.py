"""Applies a client's updates to the metadata of a view (Iceberg view specification)."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.view.metadata import ViewHistoryEntry, ViewMetadata, ViewVersion

from tableformat.catalogs.views.view_metadata import retained_versions
from tableformat.errors import InvalidArgumentError

_LAST_ADDED: Final = -1


def new_view(schema: Schema, version: Mapping[str, Any], properties: Mapping[str, str]) -> ViewMetadata:
    """The metadata of a new view, without its location."""
    first = _version({**version, "schema-id": 0, "version-id": 1})
    return ViewMetadata.model_validate(
        {
            "view-uuid": str(uuid.uuid4()),
            "format-version": 1,
            "location": "",
            "schemas": [schema.model_copy(update={"schema_id": 0})],
            "current-version-id": 1,
            "versions": [first],
            "version-log": [{"version-id": 1, "timestamp-ms": first.timestamp_ms}],
            "properties": dict(properties),
        }
    )


def check_requirements(metadata: ViewMetadata, requirements: Sequence[Mapping[str, Any]]) -> None:
    """Raise CommitFailedException if the view is not the one that the client has seen."""
    for requirement in requirements:
        match requirement["type"]:
            case "assert-view-uuid":
                if str(requirement["uuid"]) != metadata.view_uuid:
                    raise CommitFailedException("Requirement failed: view UUID does not match")
            case kind:
                raise InvalidArgumentError(f"requirement {kind!r:.80} of a view is unknown.")


def updated_view(metadata: ViewMetadata, updates: Sequence[Mapping[str, Any]]) -> ViewMetadata:
    """The metadata with the updates applied in order. Raises InvalidArgumentError for an unknown update."""
    pending = _PendingView(
        list(metadata.schemas), list(metadata.versions), metadata.current_version_id, dict(metadata.properties)
    )
    log = list(metadata.version_log)
    for update in updates:
        pending.apply(update)
        if update["action"] == "set-current-view-version":
            entry = {"version-id": pending.current_id, "timestamp-ms": time.time_ns() // 1_000_000}
            log.append(ViewHistoryEntry.model_validate(entry))
    current = next(version for version in pending.versions if version.version_id == pending.current_id)
    versions = retained_versions(pending.versions, current, pending.properties)
    return metadata.model_copy(
        update={
            **pending.fields,
            "schemas": pending.schemas,
            "versions": versions,
            "current_version_id": pending.current_id,
            "version_log": _logged(log, versions),
            "properties": pending.properties,
        }
    )


@dataclass(slots=True)
class _PendingView:
    """The parts of a view that updates change."""

    schemas: list[Schema]
    versions: list[ViewVersion]
    current_id: int
    properties: dict[str, str]
    fields: dict[str, str] = field(default_factory=dict)
    added_schema_id: int | None = None
    added_version_id: int | None = None

    def apply(self, update: Mapping[str, Any]) -> None:
        """Apply one update."""
        match update["action"]:
            case "assign-uuid":
                self.fields["view_uuid"] = str(update["uuid"])
            case "set-location":
                self.fields["location"] = str(update["location"]).rstrip("/")
            case "set-properties":
                self.properties.update({str(name): str(value) for name, value in update["updates"].items()})
            case "remove-properties":
                for name in update["removals"]:
                    self.properties.pop(name, None)
            case "add-schema":
                self.added_schema_id = _add_schema(self.schemas, Schema.model_validate(update["schema"]))
            case "add-view-version":
                self.added_version_id = _add_version(self.versions, update["view-version"], self.added_schema_id)
            case "set-current-view-version":
                self._set_current(int(update["view-version-id"]))
            case "upgrade-format-version" if update["format-version"] == 1:
                pass
            case action:
                raise InvalidArgumentError(f"update {action!r:.80} of a view is unknown.")

    def _set_current(self, wanted: int) -> None:
        version_id = self.added_version_id if wanted == _LAST_ADDED else wanted
        if version_id is None or version_id not in {version.version_id for version in self.versions}:
            raise InvalidArgumentError(f"the view has no version {wanted}.")
        self.current_id = version_id


def _add_schema(schemas: list[Schema], schema: Schema) -> int:
    for known in schemas:
        if known.as_struct() == schema.as_struct() and known.identifier_field_ids == schema.identifier_field_ids:
            return known.schema_id
    schema_id = max((known.schema_id for known in schemas), default=-1) + 1
    schemas.append(schema.model_copy(update={"schema_id": schema_id}))
    return schema_id


def _add_version(versions: list[ViewVersion], stated: Mapping[str, Any], added_schema_id: int | None) -> int:
    """The id of the version. A version that differs only in id and time is used again."""
    schema_id = added_schema_id if stated["schema-id"] == _LAST_ADDED else stated["schema-id"]
    version_id = max(version.version_id for version in versions) + 1
    made = _version({**stated, "schema-id": schema_id, "version-id": version_id})
    for known in versions:
        same = {"version_id": known.version_id, "timestamp_ms": known.timestamp_ms}
        if made.model_copy(update=same) == known:
            return known.version_id
    versions.append(made)
    return version_id


def _version(stated: Mapping[str, Any]) -> ViewVersion:
    """Parse a version. Raises InvalidArgumentError if it has two queries of one dialect."""
    version = ViewVersion.model_validate(stated)
    dialects = Counter(each.root.dialect.lower() for each in version.representations)
    for dialect, count in dialects.items():
        if count > 1:
            raise InvalidArgumentError(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
    return version


def _logged(log: Sequence[ViewHistoryEntry], versions: Sequence[ViewVersion]) -> list[ViewHistoryEntry]:
    """The entries after the last one whose version was removed: a log has no gap."""
    known = {version.version_id for version in versions}
    gone = [place for place, entry in enumerate(log) if entry.version_id not in known]
    return list(log[gone[-1] + 1 :] if gone else log)
