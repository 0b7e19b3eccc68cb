"""`create`: an empty table with columns from the command line, or with the columns of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tableformat.cli.options import WritableTableArgument, names_of_all
from tableformat.cli.session import Session

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from tableformat.range_partitions.model import RangePartitions

_COLUMN: Final = re.compile(r"\s*(?P<name>.+?)\s+(?P<type>[a-z_]+\s*([\[(].*[\])])?)(?P<required>\s+required)?\s*$")


def create(
    context: typer.Context,
    table: WritableTableArgument,
    columns: Annotated[
        list[str] | None, typer.Argument(metavar="'NAME TYPE [required]'...", help="Columns, in Iceberg's types.")
    ] = None,
    *,
    like: Annotated[
        Path | None, typer.Option("--like", metavar="FILE", help="Take the columns from a Parquet file.", exists=True)
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="A,B", help="The key columns, which identify a row.")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option("--partition-by", metavar="TRANSFORM", help="Such as 'day(ts)', 'bucket(16, id)'. Repeatable."),
    ] = None,
    range_on: Annotated[
        str | None, typer.Option("--range-on", metavar="A,B", help="The columns of range partitions.")
    ] = None,
    range_partition: Annotated[
        list[str] | None,
        typer.Option("--range-partition", metavar="'[LOWER, UPPER)'", help="A range that accepts rows. Repeatable."),
    ] = None,
    range_option: Annotated[
        list[str] | None,
        typer.Option("--range-option", metavar="NAME=VALUE", help="Such as 'step=1 day', default=true. Repeatable."),
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="A table property. Repeatable.")
    ] = None,
    parents: Annotated[
        bool, typer.Option("--parents", help="Create the directory of the lake and the namespace if they do not exist.")
    ] = False,
) -> None:
    """Create an empty table.

    Example: tableformat create shop.orders 'customer string' 'order long' 'item string' --key customer,order --parents
    """
    from rich.text import Text

    from tableformat.metadata.identifiers import identifier_parts

    session = Session.of(context)
    if bool(columns) == (like is not None):
        raise typer.BadParameter("pass the columns, or --like FILE.")
    options = _pairs(range_option, "--range-option")
    if range_partition:
        options["bounds"] = ", ".join(range_partition)
    if range_on is not None:
        options["on"] = range_on
    schema = schema_of_file(like) if like is not None else parse_columns(columns or ())
    with session.catalog(makes_lake=parents) as catalog:
        if parents:
            catalog.create_namespace(identifier_parts(table)[:-1], exist_ok=True)
        made = catalog.create_table(
            table,
            schema,
            key=names_of_all(key),
            partition_by=partition_by or (),
            properties=_pairs(properties, "--property"),
            range_partitions=_ranges(options, schema),
        )
    fields = [f"{field.name} {field.field_type}" for field in made.metadata.schema().fields]
    session.output.emit(
        lambda: {"table": made.name, "location": made.location, "columns": fields, "key": list(made.key)},
        lambda: Text(f"Created {made.name} at {made.location}."),
    )


def parse_columns(texts: Sequence[str]) -> Schema:
    """The schema for texts such as `amount decimal(10, 2) required`, with placeholders for field ids.

    Raises InvalidArgumentError with the wrong text.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

    from tableformat.errors import InvalidArgumentError

    fields = []
    for number, text in enumerate(texts, start=1):
        match = _COLUMN.match(text)
        try:
            column_type = IcebergType.model_validate(match["type"].strip()) if match else None
        except ValueError:
            column_type = None
        if match is None or column_type is None:
            raise InvalidArgumentError(
                f"{text!r} is not a column: write 'NAME TYPE' or 'NAME TYPE required', such as 'id long required' or "
                "'amount decimal(10, 2)'."
            )
        required = match["required"] is not None
        fields.append(NestedField(number, match["name"], column_type, required=required))
    return Schema(*fields)


def schema_of_file(path: Path) -> Schema:
    """The columns of a Parquet file. Its field ids are ignored."""
    import pyarrow.parquet as pq

    from tableformat.metadata.arrow_schema import iceberg_schema

    return iceberg_schema(pq.read_schema(path), format_version=2)


def _ranges(options: dict[str, str], schema: Schema) -> RangePartitions | None:
    from tableformat.range_partitions.definition_text import range_partitions_of_text

    return range_partitions_of_text(options, schema, where="--range-option") if options else None


def _pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    parted = [text.partition("=") for text in texts or ()]
    for text, (name, separator, _) in zip(texts or (), parted, strict=True):
        if not (name and separator):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=option)
    return {name: value for name, _, value in parted}
