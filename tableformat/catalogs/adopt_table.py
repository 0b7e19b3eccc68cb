"""`adopt_table`: gives a key to a table that another writer created (LK-9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tableformat.errors import InvalidKeyError
from tableformat.maintenance.health.health import TableHealth
from tableformat.operations.evolution.adopt import adopt, find_nulls, key_of_adopted, optional_columns
from tableformat.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptResult:
    """The changes of an adoption (with `dry_run`: the planned ones), and the reasons why the table is slow now."""

    table: str
    key: tuple[str, ...]
    format_version: int
    required_columns: tuple[str, ...] = ()
    """Key columns that were optional and are required now."""
    read_files_count: int = 0
    """Number of data files that were read to look for nulls. The metadata of the others shows that they have none."""
    health: TableHealth
    """The health of `main`. Each finding names the job that fixes it."""
    dry_run: bool = False


def adopt_table(table: Table, key: Sequence[str] | None, *, dry_run: bool) -> AdoptResult:
    """LK-9: raises InvalidKeyError, with the number of rows, if a key column has nulls."""
    schema = table.metadata.schema()
    columns = key_of_adopted(schema, key, table.properties)
    optional = optional_columns(schema, columns)
    found = find_nulls(table.iceberg, optional)
    if found.null_rows:
        where = " OR ".join(f"{name} IS NULL" for name in optional)
        rows = ", ".join(f"{count:,} on branch {branch}" for branch, count in found.null_rows.items())
        raise InvalidKeyError(
            f"{table.name} cannot have the key ({', '.join(columns)}): rows have a null in {' or '.join(optional)}: "
            f'{rows}. Nothing was changed. Delete these rows with table.delete("{where}", mode="scan"), or choose '
            "other columns."
        )
    if not dry_run:
        adopt(table.iceberg, columns, optional)
    return AdoptResult(
        table=table.name,
        key=columns,
        format_version=table.metadata.format_version,
        required_columns=optional,
        read_files_count=found.read_files_count,
        health=table.maintenance.health(),
        dry_run=dry_run,
    )
