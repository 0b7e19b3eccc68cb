"""Finds the schemas and partition specs that a table no longer needs (MT-1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    RemovePartitionSpecsUpdate,
    RemoveSchemasUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.partition_column import schemas_newest_first


@dataclass(frozen=True, slots=True)
class UnneededMetadata:
    """The schemas and specs that can be removed from the metadata of a table."""

    schema_ids: tuple[int, ...] = ()
    spec_ids: tuple[int, ...] = ()

    def updates(self) -> list[TableUpdate]:
        """The updates of the commit that removes them."""
        updates: list[TableUpdate] = []
        if self.spec_ids:
            updates.append(RemovePartitionSpecsUpdate.model_validate({"spec-ids": list(self.spec_ids)}))
        if self.schema_ids:
            updates.append(RemoveSchemasUpdate.model_validate({"schema-ids": list(self.schema_ids)}))
        return updates

    def requirements(self, metadata: TableMetadata) -> list[TableRequirement]:
        """The requirements of that commit."""
        if not self.updates():
            return []
        return [
            AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
        ]


def unneeded_metadata(io: FileIO, metadata: TableMetadata) -> UnneededMetadata:
    """MT-1: the schemas and specs that neither the current table nor a snapshot of it needs.

    A spec is needed if a manifest has it, a schema if a snapshot was written in it. If a partition spec or a delete
    file names a dropped column, the newest schema with that column stays, because it has the column's type (DA-6). The
    spec and the schema with the highest id stay, so that new ones never get an id that files or columns already use.
    """
    manifests = _manifests(io, metadata)
    spec_ids = {
        metadata.default_spec_id,
        max(metadata.specs()),
        *(manifest.partition_spec_id for manifest in manifests),
    }
    schema_ids = {metadata.current_schema_id, max(schema.schema_id for schema in metadata.schemas)}
    schema_ids |= {each.schema_id for each in metadata.snapshots if each.schema_id is not None}
    named = {field.source_id for spec_id in spec_ids for field in metadata.specs()[spec_id].fields}
    named |= _delete_columns(io, metadata, manifests)
    newest_first = schemas_newest_first(metadata)
    for field_id in named - _field_ids(schema for schema in newest_first if schema.schema_id in schema_ids):
        schema_ids |= {schema.schema_id for schema in [s for s in newest_first if field_id in index_by_id(s)][:1]}
    return UnneededMetadata(
        tuple(sorted({schema.schema_id for schema in metadata.schemas} - schema_ids)),
        tuple(sorted(metadata.specs().keys() - spec_ids)),
    )


def _manifests(io: FileIO, metadata: TableMetadata) -> list[ManifestFile]:
    """The manifests without duplicates."""
    lists = sorted({snapshot.manifest_list for snapshot in metadata.snapshots})
    by_path = {manifest.manifest_path: manifest for each in lists for manifest in read_manifest_list(io, each)}
    return list(by_path.values())


def _delete_columns(io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> set[int]:
    """Field ids of the columns that equality and range deletes compare."""
    return {
        field_id
        for manifest in manifests
        if manifest.content is ManifestContent.DELETES
        for entry in live_entries(read_manifest(io, manifest, metadata))
        if isinstance(entry.file, DeleteFile)
        for field_id in entry.file.equality_ids or ()
    }


def _field_ids(schemas: Iterable[Schema]) -> set[int]:
    return {field_id for schema in schemas for field_id in index_by_id(schema)}
