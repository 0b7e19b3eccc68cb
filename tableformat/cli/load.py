"""`load`: rows of Parquet, CSV and JSON files into a table, in one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tableformat.cli.options import (
    ApplicationOption,
    BatchOption,
    Stale,
    StaleOption,
    UnchangedOption,
    WritableTableArgument,
    batch_of,
    names_of,
)
from tableformat.cli.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from tableformat.errors import RowsRefusedError
    from tableformat.operations.staging.result import CommitResult
    from tableformat.table import Table

_TOLD_ROWS: Final = 5
_FORMATS: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}

_PrefixOption = Annotated[
    str | None,
    typer.Option(
        "--replace-prefix", metavar="A,B", help="Replace the rows with the same values in these leading key columns."
    ),
]
_IntervalOption = Annotated[
    str | None,
    typer.Option(
        "--replace-interval",
        metavar="A,B",
        help="Replace the rows whose values in these columns are from --lower (included) to --upper (excluded).",
    ),
]
_OrderOption = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="A,B",
        help="Add only the newest rows of each prefix or key: those with the greatest values in these columns.",
    ),
]


def load(
    context: typer.Context,
    table: WritableTableArgument,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Parquet, CSV, or JSON with one row per line.", exists=True, dir_okay=False
        ),
    ],
    *,
    replace_prefix: _PrefixOption = None,
    replace_interval: _IntervalOption = None,
    lower: Annotated[str | None, typer.Option(metavar="VALUE", help="The first value to replace.")] = None,
    upper: Annotated[str | None, typer.Option(metavar="VALUE", help="The first value to keep.")] = None,
    upsert: Annotated[bool, typer.Option("--upsert", help="Replace the rows with the same key.")] = False,
    order_by: _OrderOption = None,
    merge_schema: Annotated[
        bool, typer.Option("--merge-schema", help="Add columns that the table lacks, and widen types. Parquet only.")
    ] = False,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Load into this branch instead of main.")
    ] = None,
    application_id: ApplicationOption = None,
    batch_id: BatchOption = None,
    if_unchanged_since: UnchangedOption = None,
    on_stale: StaleOption = Stale.IGNORE,
) -> None:
    """Add the rows of local files to a table, in one snapshot; with an option they replace rows.

    Values of CSV and JSON are read with the types of the table's columns. An empty CSV value without quotes is null. A
    JSON file is held in memory, the others are read in batches.

    Example: tableformat load shop.orders january/*.parquet --upsert
    """
    replacing = {"--upsert": upsert, "--replace-prefix": replace_prefix, "--replace-interval": replace_interval}
    given = [name for name, value in replacing.items() if value not in (None, False)]
    if len(given) > 1:
        raise typer.BadParameter(f"pass only one of {', '.join(given)}.")
    _require_some(given, {"--if-unchanged-since": if_unchanged_since}, replacing)
    of_keys = {"--order-by": order_by, "--on-stale": None if on_stale is Stale.IGNORE else on_stale}
    _require_some(given, of_keys, ("--upsert", "--replace-prefix"))
    _require_some(given, {"--lower": lower, "--upper": upper}, ("--replace-interval",))
    if replace_interval is not None and lower is None and upper is None:
        raise typer.BadParameter("--replace-interval requires --lower, --upper or both.")
    batch = batch_of(application_id, batch_id, if_unchanged_since)
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with unreadable_is_refused(files):
        rows = rows_of_files(files, handle.schema)
        if merge_schema:
            handle.merge_schema(_schema_to_merge(files, rows))
        if upsert:
            result = handle.upsert(rows, order_by=names_of(order_by), on_stale=on_stale.value, **batch)
        elif replace_prefix is not None:
            prefix, order = names_of(replace_prefix), names_of(order_by)
            result = handle.replace(rows, prefix=prefix, order_by=order, on_stale=on_stale.value, **batch)
        elif replace_interval is not None:
            on = names_of(replace_interval) or []
            low, high = (_bound(handle, on, each) for each in (lower, upper))
            result = handle.replace_interval(rows, on=on, lower=low, upper=high, **batch)
        else:
            result = handle.append(rows, **batch)
    emit_loaded(session, handle, files, result, done="loaded into")


def _require_some(given: Sequence[str], options: Mapping[str, object], needed: Collection[str]) -> None:
    """Refuse options that only have an effect with one of the needed ones."""
    wrong = [name for name, value in options.items() if value is not None]
    if wrong and not set(given) & set(needed):
        raise typer.BadParameter(f"{wrong[0]} requires {' or '.join(needed)}.")


def _bound(table: Table, on: Sequence[str], text: str | None) -> Any:
    from tableformat.keys.value_text import parse_tuple

    if text is None:
        return None
    values = parse_tuple(text, on, table.metadata.schema(), where=table.name)
    return values[0] if len(on) == 1 else values


def emit_loaded(session: Session, table: Table, files: Sequence[Path], result: CommitResult, *, done: str) -> None:
    """Print the result of files that were "loaded into" or "applied to" a table."""
    from rich.text import Text

    from tableformat.display.results import commit_dict, commit_text
    from tableformat.display.text import counted

    is_done = not (result.already_applied or result.dry_run)
    text = (f"{counted(len(files), 'file')} {done} {table.name}.\n" if is_done else "") + commit_text(result)
    session.output.emit(
        lambda: {"table": table.name, "files": [str(path) for path in files], **commit_dict(result)},
        lambda: Text(text),
    )


def _schema_to_merge(paths: Sequence[Path], rows: Any) -> pa.Schema:
    """The columns of Parquet files. Raises InvalidArgumentError for formats without types."""
    from tableformat.errors import InvalidArgumentError

    if any(_FORMATS.get(path.suffix.lower()) != "parquet" for path in paths):
        raise InvalidArgumentError(
            "--merge-schema needs Parquet files, because CSV and JSON do not have types for new columns. Nothing was "
            "changed. Convert the files, or add the columns with table.update_schema() in Python."
        )
    columns: pa.Schema = rows.schema
    return columns


def rows_of_files(paths: Sequence[Path], schema: pa.Schema, *, images: Sequence[str] = ()) -> Any:
    """The rows of files with one format and the same columns, read with the types in `schema`. `images`: columns of
    JSON files whose fields, at any depth, are columns of the table too. They may differ between the files.

    Raises InvalidArgumentError for an unknown format, for several formats, and for columns that differ.
    """
    import pyarrow as pa

    from tableformat.errors import InvalidArgumentError

    formats = {_FORMATS.get(path.suffix.lower()) for path in paths}
    if None in formats or len(formats) > 1:
        raise InvalidArgumentError(
            f"{', '.join(map(str, paths))}: pass files of one format, with names that end in {', '.join(_FORMATS)}. "
            "Nothing was changed."
        )
    if formats == {"json"}:
        tables = [_read_json(path, schema, images) for path in paths]
        events = _as_one_file(tables) if images else None
        return pa.concat_tables(_of_same_columns(paths, tables)) if events is None else events
    return _dataset(paths, formats == {"csv"}, schema)


@contextmanager
def unreadable_is_refused(paths: Sequence[Path]) -> Iterator[None]:
    """CSV is read in batches, so an invalid value is found only while rows are written."""
    import pyarrow as pa

    from tableformat.errors import InvalidArgumentError, RowsRefusedError

    try:
        yield
    except RowsRefusedError as error:
        raise RowsRefusedError(_without_python(error), error.refused, error.refused_count) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        named = ", ".join(map(str, paths))
        is_array = "Column() changed from object to array" in str(error)
        hint = (
            " A JSON file must have one row, as an object, per line, without an array around them." if is_array else ""
        )
        raise InvalidArgumentError(f"{named} cannot be read: {error}. Nothing was changed.{hint}") from error


def _without_python(error: RowsRefusedError) -> str:
    """The message with the first refused rows, instead of the advice for programs."""
    rows = error.refused.slice(0, _TOLD_ROWS).to_pylist()
    told = "; ".join(f"row {row['row_index']}: {row['column']} {row['reason']}" for row in rows)
    return (
        f"{str(error).partition(' The attribute')[0]} Rejected: "
        f"{told}{', ...' if error.refused_count > len(rows) else '.'}"
    )


def _dataset(paths: Sequence[Path], is_csv: bool, schema: pa.Schema) -> Any:
    """One dataset over all files, after the columns of each file were checked."""
    import pyarrow.csv as pc
    import pyarrow.dataset as ds

    types = pc.ConvertOptions(
        column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    read_as = ds.CsvFileFormat(convert_options=types) if is_csv else ds.ParquetFileFormat()
    parts = [ds.dataset(path, format=read_as) for path in paths]
    _of_same_columns(paths, parts)
    return ds.dataset([str(path) for path in paths], format=read_as, schema=parts[0].schema)


def _read_json(path: Path, schema: pa.Schema, images: Sequence[str]) -> pa.Table:
    """Columns that the table has too are read with the table's type. Arrow reads dates only from numbers, so dates are
    read as text first."""
    import pyarrow as pa
    import pyarrow.json as pj

    found = pj.read_json(path).schema
    # The table refuses nulls in required columns. Markers have such nulls (CP-66).
    target = pa.schema([_as_in_table(field, schema, images) for field in found])
    typed = [field for field in target if field.name in schema.names or field.name in images]
    read = pa.schema([field.with_type(_with_dates_as_text(field.type)) for field in typed])
    return pj.read_json(path, parse_options=pj.ParseOptions(explicit_schema=read)).select(found.names).cast(target)


def _as_one_file(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Events with the fields of all tables, as if their lines were in one file: a file of deletes has no image after,
    and its images before may have keys alone. None for types that differ, and for other columns:
    in one table, events with and without `payload` would be taken for tombstones."""
    import pyarrow as pa

    if len({frozenset(table.schema.names) for table in tables}) > 1:
        return None
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _as_in_table(field: pa.Field, schema: pa.Schema, images: Sequence[str]) -> pa.Field:
    import pyarrow as pa

    if field.name in images and pa.types.is_struct(field.type):
        return field.with_type(pa.struct([_as_in_table(each, schema, images) for each in field.type]))
    return schema.field(field.name).with_nullable(True) if field.name in schema.names else field


def _with_dates_as_text(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_dates_as_text(field.type)) for field in kind])
    return pa.string() if pa.types.is_date(kind) else kind


def _of_same_columns(paths: Sequence[Path], parts: Sequence[Any]) -> Sequence[Any]:
    from tableformat.errors import InvalidArgumentError

    first = parts[0].schema
    for path, part in zip(paths, parts, strict=True):
        if not part.schema.equals(first):
            raise InvalidArgumentError(
                f"{path} has the columns ({_columns(part.schema)}), but {paths[0]} has ({_columns(first)}). Nothing "
                "was changed. Files of one load must have the same columns in the same order."
            )
    return parts


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
