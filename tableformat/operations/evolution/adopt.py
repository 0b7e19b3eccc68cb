"""Adopts a table of another writer: makes its key columns required, if no row has a null in them, and sets its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyiceberg.expressions import BooleanExpression, IsNull, Or, Reference
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
)

from tableformat.commit.metadata_commit import no_ref_came
from tableformat.errors import InvalidKeyError
from tableformat.keys.table_key import check_key_columns, key_field_ids, key_names
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.evolution.global_spec import global_spec_id
from tableformat.operations.history.references import commit_updates
from tableformat.properties import KEY_FIELD_IDS
from tableformat.scan.scan import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class NullsFound:
    """The result of a search for nulls in key columns, over the heads of all branches."""

    read_files_count: int = 0
    """Number of data files that had to be read because their metadata does not show nulls."""
    null_rows: dict[str, int] = field(default_factory=dict)
    """Branch -> number of its rows with a null in a key column; branches without such rows are left out."""


def key_of_adopted(schema: Schema, stated: Sequence[str] | None, properties: Mapping[str, str]) -> tuple[str, ...]:
    """LK-9: the key that the caller names, or the key of the table: its own property, or the identifier fields of the
    schema.

    Raises InvalidKeyError if there is neither, and errors such as UnknownColumnError for columns that cannot be a key.
    """
    if stated is None:
        stated = key_names(schema, key_field_ids(schema, properties))
        if not stated:
            raise InvalidKeyError(
                "the table has no identifier fields, so its key is unknown: pass the key columns, most significant "
                "first."
            )
    check_key_columns(schema, stated)
    return tuple(stated)


def optional_columns(schema: Schema, key: Iterable[str]) -> tuple[str, ...]:
    """The key columns that may be null."""
    return tuple(name for name in key if not schema.find_field(name).required)


def find_nulls(iceberg: IcebergTable, columns: Sequence[str]) -> NullsFound:
    """LK-9: the number of rows with a null in one of the columns, at the head of each branch. Files are excluded by
    their metadata; the others are read, with their deletes applied."""
    if not columns:
        return NullsFound()
    nulls: list[BooleanExpression] = [IsNull(term=Reference(name)) for name in columns]
    where = reduce(Or, nulls)
    read = 0
    found: dict[str, int] = {}
    for branch in branches(iceberg):
        scan = Scan(_view(iceberg, branch), where, list(columns))
        read += len(scan.plan().tasks)
        count = scan.count()
        if count:
            found[branch] = count
    return NullsFound(read_files_count=read, null_rows=found)


def adopt(iceberg: IcebergTable, key: Sequence[str], optional: Sequence[str]) -> None:
    """LK-9: make the columns required and set the key of the table, in one commit that fails if a branch moved in the
    meantime. A partitioned table gets a spec for deletes of all partitions (FM-5)."""
    metadata = iceberg.metadata
    schema = metadata.schema()
    ids = check_key_columns(schema, key)
    fields = [each.model_copy(update={"required": True}) if each.name in optional else each for each in schema.fields]
    next_id = max(known.schema_id for known in metadata.schemas) + 1
    renewed = Schema(*fields, schema_id=next_id, identifier_field_ids=list(ids))
    is_changed = optional or set(ids) != set(schema.identifier_field_ids)
    heads = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": metadata.refs[name].snapshot_id})
        for name in branches(iceberg)
    ]
    commit_updates(
        iceberg,
        (AssertCurrentSchemaId.model_validate({"current-schema-id": schema.schema_id}), *heads, *no_ref_came(iceberg)),
        (
            *((AddSchemaUpdate.model_validate({"schema": renewed}),) if is_changed else ()),
            *((SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),) if is_changed else ()),
            SetPropertiesUpdate(updates={KEY_FIELD_IDS: ",".join(map(str, ids))}),
        ),
        is_tried_again=False,  # Rows of a branch added in the meantime were not checked.
    )
    global_spec_id(iceberg)


def branches(iceberg: IcebergTable) -> list[str]:
    """The branches of the table, sorted."""
    refs = iceberg.metadata.refs.items()
    return sorted(name for name, ref in refs if ref.snapshot_ref_type is SnapshotRefType.BRANCH)


def _view(iceberg: IcebergTable, branch: str) -> SnapshotView:
    return head_view(iceberg.metadata, iceberg.io, branch)
