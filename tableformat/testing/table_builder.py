"""Builds small real tables from a list of steps, for the corpus and for any test.

    built = build(catalog, {
        "schema": {"id": "string", "n": "long", "v": "long"}, "key": ["id", "n"],
        "steps": [
            {"append": [["a", 1, 10], ["a", 2, 20]], "as": "first"},
            {"delete_prefix": {"id": "a"}},
        ],
    })
    built.table.scan().count()                       0
    built.rows("first")                              the rows of the snapshot of that step

Every step is one snapshot, or one commit of metadata. All steps are described in `docs/reference/corpus.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation

from tableformat.catalogs.catalog import Catalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DataFile
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.operations.staged_write import StagedWrite
from tableformat.operations.staging.result import CommitResult
from tableformat.parquet.parquet_file import plain_parquet
from tableformat.range_partitions.definition_text import range_partitions_of_text
from tableformat.range_partitions.model import RangePartitions
from tableformat.storage.location import local_path
from tableformat.table import Table
from tableformat.testing.json_values import (
    arrow_table,
    row_from_json,
    rows_from_json,
    schema_from_json,
    tuple_from_json,
    type_from_json,
)
from tableformat.testing.raw_items import RawItems
from tableformat.testing.table_files import live_data_files, live_files
from tableformat.write.staged import StagedFiles

VERBS: Final = (
    "append",
    "delete",
    "delete_prefix",
    "delete_range",
    "delete_rows",
    "replace",
    "replace_interval",
    "upsert",
    "apply_changes",
    "merge",
    "overwrite",
)
_ABOUT_THE_STEP: Final = ("as", "on_branch", "handle_of", "error", "note", "refused")
"""Entries of a step that are not options of its operation."""

Runner: TypeAlias = "Callable[[BuiltTable, Table, Any, dict[str, Any]], CommitResult | None]"
"""Runs a step."""


@dataclass
class BuiltTable:
    """A table, its catalog, and names for its snapshots and files."""

    catalog: Catalog
    identifier: str
    snapshot_ids: dict[str, int] = field(default_factory=dict)
    """By the name in a step's "as": the snapshot after the step."""
    data_files: dict[str, list[DataFile]] = field(default_factory=dict)
    """By the same name: the data files that the step added."""
    metadata: dict[str, tuple[TableMetadata, str]] = field(default_factory=dict)
    """By the same name: the metadata after the step and its location, for writers that have not refreshed after it."""
    refused: list[list[dict[str, Any]]] = field(default_factory=list)
    """The rows returned by each step with "refused", in the order of the steps."""
    writes: dict[str, tuple[StagedWrite, list[StagedFiles]]] = field(default_factory=dict)
    """Uncommitted files of several writers, by the name of the step."""

    @property
    def table(self) -> Table:
        """A handle at the newest metadata."""
        return self.catalog.load_table(self.identifier)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a named snapshot, read from the table."""
        rows: list[dict[str, Any]] = self.table.scan(snapshot_id=self.snapshot_ids[name]).to_arrow().to_pylist()
        return rows

    def run(self, step: Mapping[str, Any]) -> None:
        """Run one step. Errors are passed on to the caller."""
        branch = step.get("on_branch", "main")
        table = self.catalog.load_table(self.identifier, branch=branch)
        before = {file.file_path for file in live_data_files(table)}
        name, argument, options = split_step(step)
        if "handle_of" in step:
            table.iceberg.metadata, table.iceberg.metadata_location = self.metadata[step["handle_of"]]
        result = _RUNNERS[name](self, table, argument, options)
        if "refused" in step:
            diverted = None if result is None else result.refused
            schema = table.metadata.schema()
            names = [column.name for column in schema.fields]
            self.refused.append([] if diverted is None else diverted.select(names).to_pylist())
        if "as" in step:
            head = self.catalog.load_table(self.identifier, branch=branch)
            self.metadata[step["as"]] = (head.metadata, head.iceberg.metadata_location)
            if head.snapshot_id is not None:
                self.snapshot_ids[step["as"]] = head.snapshot_id
            added = [file for file in live_data_files(head) if file.file_path not in before]
            self.data_files.setdefault(step["as"], added)


def build(catalog: Catalog, case: Mapping[str, Any], *, identifier: str = "db.t") -> BuiltTable:
    """Create the table of a case and run its steps, except steps with "error"."""
    built = create(catalog, case, identifier=identifier)
    for step in case["steps"]:
        if "error" not in step:
            built.run(step)
    return built


def create(catalog: Catalog, case: Mapping[str, Any], *, identifier: str = "db.t") -> BuiltTable:
    """The empty table of a case."""
    namespace = identifier.rpartition(".")[0]
    catalog.create_namespace(namespace, exist_ok=True)
    catalog.create_table(
        identifier,
        schema_from_json(case["schema"], case.get("required", ())),
        key=case.get("key", ()),
        partition_by=case.get("partition_by", ()),
        properties=case.get("properties"),
        range_partitions=_range_partitions(case),
    )
    return BuiltTable(catalog, identifier)


def _range_partitions(case: Mapping[str, Any]) -> RangePartitions | None:
    """The entry "range_partitions" of a case: the arguments of RangePartitions, with values in JSON form, or texts
    (RP-23)."""
    given = case.get("range_partitions")
    return None if given is None else _partitions(given, schema_from_json(case["schema"], case.get("required", ())))


def _partitions(given: Mapping[str, Any], schema: Schema) -> RangePartitions:
    if all(isinstance(value, str) for value in given.values()):
        return range_partitions_of_text(given, schema, where="range_partitions")
    on = given["on"]
    values = {name: value for name, value in given.items() if name not in ("bounds", "splits", "on_demand_limits")}
    limits = given.get("on_demand_limits")
    return RangePartitions(
        **values,
        bounds=[_bound(each, schema, on) for each in given.get("bounds", ())],
        splits=[tuple_from_json(each, schema, on) for each in given.get("splits", ())],
        on_demand_limits=None if limits is None else _bound(limits, schema, on),
    )


def _bound(pair: Sequence[Any], schema: Schema, on: Sequence[str]) -> tuple[Any, Any]:
    lower, upper = pair
    return tuple_from_json(lower, schema, on), tuple_from_json(upper, schema, on)


def split_step(step: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """The operation of the step, its argument and its options."""
    names = [name for name in step if name in _RUNNERS]
    if len(names) != 1:
        raise InvalidArgumentError(f"a step does one thing of {', '.join(_RUNNERS)}: {dict(step)}.")
    options = {name: value for name, value in step.items() if name not in (*names, *_ABOUT_THE_STEP)}
    return names[0], step[names[0]], options


def verb_arguments(
    verb: str, argument: Any, options: Mapping[str, Any], schema: Schema, key: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The Python arguments of an operation: rows as lists of dicts, bounds as tuples, values in the columns' types."""
    positional: tuple[Any, ...] = ()
    keywords = dict(options)
    match verb:
        case "append" | "overwrite":
            positional = (rows_from_json(argument, schema),)
        case "replace" | "upsert":
            positional = ([_event(row, schema) for row in argument],)
            keywords |= {"cover": rows_from_json(options["cover"], schema)} if "cover" in options else {}
        case "delete":
            positional = (argument,)
        case "delete_prefix":
            one = isinstance(argument, Mapping)
            positional = (row_from_json(argument, schema) if one else rows_from_json(argument, schema),)
        case "delete_rows":
            positional = (rows_from_json(argument, schema),)
        case "delete_range":
            columns = argument.get("on", key)
            keywords |= {"on": columns} if "on" in argument else {}
            keywords |= {name: tuple_from_json(argument.get(name), schema, columns) for name in ("lower", "upper")}
        case "replace_interval":
            on = [options["on"]] if isinstance(options["on"], str) else options["on"]
            positional = (rows_from_json(argument, schema),)
            keywords |= {name: tuple_from_json(options.get(name), schema, on) for name in ("lower", "upper")}
        case "apply_changes" | "merge":
            positional = ([_event(event, schema) for event in argument],)
        case _:
            raise InvalidArgumentError(f"{verb!r} is not an operation.")
    return positional, keywords


def _event(event: Any, schema: Schema) -> dict[str, Any]:
    """A change event, a source row of a merge or a row with an order. It may have columns that the table lacks."""
    if not isinstance(event, Mapping):
        return row_from_json(event, schema)
    known = {name: value for name, value in event.items() if name in schema.column_names}
    return {**{name: value for name, value in event.items() if name not in known}, **row_from_json(known, schema)}


def _run_verb(verb: str) -> Runner:
    def run(_built: BuiltTable, table: Table, argument: Any, options: dict[str, Any]) -> CommitResult | None:
        return _call(table, table, verb, argument, options)

    return run


def _call(table: Table, target: Any, verb: str, argument: Any, options: Mapping[str, Any]) -> CommitResult | None:
    """Call the operation on a table or a transaction, with Arrow data instead of row lists."""
    schema = table.metadata.schema()
    positional, keywords = verb_arguments(verb, argument, options, schema, table.key)
    if verb in ("apply_changes", "merge") or "order_by" in keywords:
        positional = (events_table(positional[0], schema),)
    elif positional and isinstance(positional[0], list):
        names = None if verb in ("delete_prefix", "delete_rows") else [column.name for column in schema.fields]
        positional = (arrow_table(positional[0], schema, names),)
    if "cover" in keywords:
        keywords["cover"] = arrow_table(keywords["cover"], schema)
    if verb == "merge":
        clauses = keywords.pop("clauses")
        merge = target.merge(*positional, **keywords)
        for method, *arguments in clauses:
            getattr(merge, method)(*arguments)
        merge.execute()
        return None
    result: CommitResult | None = getattr(target, verb)(*positional, **keywords)
    return result


def events_table(events: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    """Columns of the table in its types, the others in the types that Arrow infers."""
    table = arrow_table(events, schema)
    others = dict.fromkeys(name for event in events for name in event if name not in schema.column_names)
    for name in others:
        table = table.append_column(name, pa.array([event.get(name) for event in events]))
    return table


def _transaction(_built: BuiltTable, table: Table, steps: Any, options: dict[str, Any]) -> None:
    with table.transaction(**options) as transaction:
        for step in steps:
            verb, argument, verb_options = split_step(step)
            _call(table, transaction, verb, argument, verb_options)


def _stage_write(built: BuiltTable, table: Table, tasks: Any, options: dict[str, Any]) -> None:
    """Each list of rows is written by a separate writer, as in other processes."""
    name, schema = options.pop("name"), table.metadata.schema()
    names = [column.name for column in schema.fields]
    write = table.new_write(**options)
    staged = [write.write(arrow_table(rows_from_json(rows, schema), schema, names)) for rows in tasks]
    built.writes[name] = (write, staged)


def _commit_write(built: BuiltTable, table: Table, name: Any, _options: dict[str, Any]) -> None:
    write, staged = built.writes[name]
    table.commit(write, staged)


def _publish(_built: BuiltTable, table: Table, branch: Any, _options: dict[str, Any]) -> None:
    table.maintenance.publish(branch)


def _raw(built: BuiltTable, table: Table, items: Any, _options: dict[str, Any]) -> None:
    """Hand-made files, in one commit; see `raw_items`."""
    raw = RawItems(table, built.data_files)
    for item in items:
        raw.add(item)
    head = table.metadata.snapshot_by_name(table.branch)
    change = TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.ROW_DELTA,
        added_data_files=tuple(raw.data_files),
        added_delete_files=tuple(raw.delete_files),
        planned_snapshot_id=head.snapshot_id if head else None,
        planned_sequence_number=(head.sequence_number or 0) if head else 0,
    )
    commit_change(table.iceberg, change, ref=table.branch)


def _rollback(built: BuiltTable, table: Table, name: Any, options: dict[str, Any]) -> None:
    table.rollback(snapshot_id=built.snapshot_ids[name], **options)


def _create_branch(built: BuiltTable, table: Table, name: Any, options: dict[str, Any]) -> None:
    table.create_branch(name, built.snapshot_ids[options["at"]] if "at" in options else None)


def _create_tag(built: BuiltTable, table: Table, name: Any, options: dict[str, Any]) -> None:
    table.create_tag(name, built.snapshot_ids[options["at"]] if "at" in options else None)


def _update_schema(_built: BuiltTable, table: Table, calls: Any, _options: dict[str, Any]) -> None:
    with table.update_schema() as update:
        for method, *arguments in calls:
            if method in ("add_column", "update_column"):
                arguments[1] = type_from_json(arguments[1])
            getattr(update, method)(*arguments)


def _update_spec(_built: BuiltTable, table: Table, calls: Any, _options: dict[str, Any]) -> None:
    with table.update_spec() as update:
        for method, *arguments in calls:
            getattr(update, method)(*arguments)


def _damage(_built: BuiltTable, table: Table, kind: Any, options: dict[str, Any]) -> None:
    """Damage the live files of a kind: "data", "position", "equality" or "range"."""
    for file in live_files(table):
        is_meant = kind == "data" if isinstance(file, DataFile) else file.kind.value == kind
        path = Path(local_path(file.file_path) or file.file_path)
        if not is_meant:
            continue
        match options["how"]:
            case "remove":
                path.unlink()
            case "truncate":
                path.write_bytes(path.read_bytes()[:-10])
            case "overwrite":
                path.write_bytes(b"no Parquet file")
            case "swap":
                pq.write_table(pa.table({"id": ["a"]}), path)
            case "flip":
                path.write_bytes(_with_flipped_bit(path.read_bytes()))


def _with_flipped_bit(stored: bytes) -> bytes:
    """Change a value in the last column of the first row group, like faulty memory or a faulty disk."""
    row_group = pq.read_metadata(pa.BufferReader(plain_parquet(stored))).row_group(0)
    chunk = row_group.column(row_group.num_columns - 1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged = bytearray(stored)
    damaged[start + chunk.total_compressed_size - 1] ^= 1
    return bytes(damaged)


def _set_properties(_built: BuiltTable, table: Table, properties: Any, _options: dict[str, Any]) -> None:
    table.set_properties(**{name: value for name, value in properties.items() if value is not None})
    table.remove_properties(*(name for name, value in properties.items() if value is None))


def _alter_range_partitions(_built: BuiltTable, table: Table, changes: Any, _options: dict[str, Any]) -> None:
    schema, on = table.metadata.schema(), table.range_partitions.on
    pairs = {name: [_bound(each, schema, on) for each in changes.get(name, ())] for name in ("add", "drop", "merge")}
    splits = [tuple_from_json(each, schema, on) for each in changes.get("split", ())]
    table.range_partitions.alter(add=pairs["add"], drop=pairs["drop"], merge=pairs["merge"], split=splits)


def _define_range_partitions(_built: BuiltTable, table: Table, given: Any, _options: dict[str, Any]) -> None:
    table.range_partitions.define(_partitions(given, table.metadata.schema()))


def _retire(_built: BuiltTable, table: Table, pair: Any, _options: dict[str, Any]) -> None:
    lower, upper = _bound(pair, table.metadata.schema(), table.range_partitions.on)
    table.range_partitions.retire(lower, upper)


def _restore(_built: BuiltTable, table: Table, tag: Any, options: dict[str, Any]) -> None:
    table.range_partitions.restore(tag, **options)


def _cherrypick(built: BuiltTable, table: Table, name: Any, _options: dict[str, Any]) -> None:
    cherrypick(table.iceberg, table.branch, built.snapshot_ids[name])


def _set_key(_built: BuiltTable, table: Table, columns: Any, _options: dict[str, Any]) -> None:
    table.set_key(columns)


def _convert_deletes(_built: BuiltTable, table: Table, _argument: Any, options: dict[str, Any]) -> None:
    table.maintenance.convert_deletes(**options)


_RUNNERS: Final[Mapping[str, Runner]] = {
    **{verb: _run_verb(verb) for verb in VERBS},
    "transaction": _transaction,
    "stage_write": _stage_write,
    "commit_write": _commit_write,
    "publish": _publish,
    "raw": _raw,
    "convert_deletes": _convert_deletes,
    "rollback": _rollback,
    "create_branch": _create_branch,
    "create_tag": _create_tag,
    "update_schema": _update_schema,
    "update_spec": _update_spec,
    "set_properties": _set_properties,
    "alter_range_partitions": _alter_range_partitions,
    "define_range_partitions": _define_range_partitions,
    "retire": _retire,
    "restore": _restore,
    "cherrypick": _cherrypick,
    "set_key": _set_key,
    "damage": _damage,
}
