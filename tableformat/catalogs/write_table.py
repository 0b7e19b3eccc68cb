"""Writes rows to a table by name, and creates the table if it does not exist."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from tableformat.catalogs.names import Identifier, dotted
from tableformat.catalogs.new_table import new_table
from tableformat.errors import InvalidArgumentError, StorageError
from tableformat.metadata.identifiers import identifier_parts
from tableformat.operations.options import CommitKeywords, one_of
from tableformat.operations.staging.result import CommitResult
from tableformat.table import Table
from tableformat.write.rows.rows import as_reader

if TYPE_CHECKING:
    from tableformat.catalogs.catalog import Catalog

MODES: Final = ("append", "overwrite", "upsert", "error")
SCHEMA_MODES: Final = ("strict", "merge")


def write_table(
    catalog: Catalog,
    identifier: Identifier,
    rows: Any,
    *,
    mode: str,
    schema_mode: str,
    key: Sequence[str] | None,
    partition_by: Sequence[str] | None,
    properties: Mapping[str, str] | None,
    commit: CommitKeywords,
) -> CommitResult:
    """See `Catalog.write`."""
    one_of(mode, MODES, option="mode")
    one_of(schema_mode, SCHEMA_MODES, option="schema_mode")
    exists = catalog.table_exists(identifier)
    if exists and mode != "error":
        table = catalog.load_table(identifier)
        _check_definition(table, key, partition_by, properties)
        reader = as_reader(_rows_of(rows), schema=table.schema)
        if schema_mode == "merge":
            table.merge_schema(reader.schema)
    else:
        reader = as_reader(_rows_of(rows))
        if not reader.schema.names:
            raise InvalidArgumentError(f"rows have no columns, so {dotted(identifier)} cannot be created from them.")
        if mode == "upsert" and not key:
            raise InvalidArgumentError(f"mode 'upsert' needs a key: write({dotted(identifier)!r}, ..., key=[...]).")
        catalog.create_namespace(identifier_parts(identifier)[:-1], exist_ok=True)
        table = catalog.create_table(
            identifier,
            reader.schema,
            key=key or (),
            partition_by=partition_by or (),
            properties=properties,
            exist_ok=mode != "error",
        )
    if mode == "overwrite":
        return table.overwrite(reader, **commit)
    if mode == "upsert":
        return table.upsert(reader, **commit)
    return table.append(reader, **commit)


def _rows_of(rows: Any) -> Any:
    """The rows of Parquet files if `rows` is a path (glob patterns are not accepted); otherwise `rows`."""
    if not isinstance(rows, str | os.PathLike):
        return rows
    try:
        return ds.dataset(os.fspath(rows), format="parquet", partitioning="hive")
    except FileNotFoundError as error:
        raise InvalidArgumentError(f"rows: no Parquet file or directory exists at {os.fspath(rows)!r}.") from error
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"rows: {os.fspath(rows)!r} cannot be read as Parquet: {error}.") from error
    except OSError as error:
        raise StorageError(f"rows: {os.fspath(rows)!r} cannot be read: {error}.") from error


def _check_definition(
    table: Table,
    key: Sequence[str] | None,
    partition_by: Sequence[str] | None,
    properties: Mapping[str, str] | None,
) -> None:
    """Raises InvalidArgumentError if the arguments describe another table than the existing one."""
    wanted = new_table(
        table.iceberg.schema(),
        key=table.key if key is None else key,
        partition_by=partition_by or (),
        properties=properties or {},
        range_partitions=None,
    )
    if key is not None and tuple(key) != table.key:
        current = ", ".join(table.key) or "no columns"
        raise InvalidArgumentError(
            f"{table.name} exists with the key ({current}), not ({', '.join(key)}). Omit `key`, or change the key "
            "with table.set_key()."
        )
    spec = [(each.name, str(each.transform)) for each in table.metadata.spec().fields]
    if partition_by is not None and spec != [(each.name, str(each.transform)) for each in wanted.spec.fields]:
        raise InvalidArgumentError(
            f"{table.name} exists with another partition spec ({', '.join(name for name, _ in spec) or 'none'}). "
            "Omit `partition_by`, or change the spec with table.update_spec()."
        )
    changed = sorted(name for name, value in (properties or {}).items() if table.properties.get(name) != value)
    if changed:
        raise InvalidArgumentError(
            f"{table.name} exists with other values of {', '.join(changed)}. Omit `properties`, or change them with "
            "table.set_properties()."
        )
