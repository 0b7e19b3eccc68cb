"""Plans a write of Spark: decides once which facts about the table the executors and the commit need."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import UUIDType

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.staging import is_staged
from spark_ext.service.states.named_states import names_state
from spark_ext.service.states.session_settings import options_of_write
from spark_ext.service.states.write_audit_publish import WriteAuditPublish
from spark_ext.service.wire.field_tree import field_trees
from spark_ext.service.wire.paths import path_of
from spark_ext.service.wire.s3_options import s3_options
from spark_ext.service.wire.transforms import spark_transform
from spark_ext.service.writes.bloom_filters import bloom_filters
from spark_ext.service.writes.equal_replacement import REPLACE_EQUAL, checked_columns
from spark_ext.service.writes.overwrite_validation import OverwriteValidation
from spark_ext.service.writes.range_plan import is_sorted_by_place, range_plan
from spark_ext.service.writes.refused_rows import check_takes_refused_rows
from spark_ext.service.writes.replacement_plan import key_plan, replacement
from spark_ext.service.writes.row_operation import OPERATION
from spark_ext.service.writes.write_options import (
    ADVISORY_PARTITION_SIZE,
    ALLOW_OUTSIDE,
    APPLICATION_ID,
    BATCH_ID,
    DISTRIBUTION,
    DISTRIBUTION_MODES,
    ISOLATION_LEVEL,
    ON_REFUSED,
    OUTPUT_SPEC_ID,
    REFUSED_ROWS_TABLE,
    REPLACE_INTERVAL,
    REPLACE_PREFIX,
    Interval,
    WriteOptions,
)
from tableformat.commit.read_only import refuse_table_of_another_lake
from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import CommitConflictError, InvalidArgumentError, TableFormatError, UnsupportedFeatureError
from tableformat.keys.sort_marker import SORTED_BY, marker_bytes
from tableformat.parquet.parquet_output import compression_codec
from tableformat.properties import COMPRESSION_LEVEL, RANGE_PARTITIONS, positive_int, property_one_of
from tableformat.table import Table
from tableformat.write.context import WriteContext
from tableformat.write.rows.checks import check_conditions

APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
OVERWRITE_PARTITIONS: Final = "overwrite-partitions"
DELTA: Final = "delta"
"""UPDATE, MERGE and DELETE by position."""

_STEM_COUNT: Final = 16
"""The number of prefixes for file locations. A location provider that spreads files over an object store returns
different ones."""
_TRANSFORMS: Final[dict[type[Transform[Any, Any]], str]] = {
    IdentityTransform: "identity",
    BucketTransform: "bucket",
    TruncateTransform: "truncate",
    YearTransform: "years",
    MonthTransform: "months",
    DayTransform: "days",
    HourTransform: "hours",
    VoidTransform: "void",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """How new data files become entries of the table. The target is passed to Java and returned with the commit.

    It holds ids, and its own copy of the schema. A stream can therefore commit for months after its start, when the
    metadata file of its start has been deleted and its schema has been removed from the table's metadata (MT-1).
    """

    table: tuple[str, ...]
    table_uuid: str
    branch: str
    schema: str
    """The columns of the rows, as JSON in Iceberg's form. Names in the options refer to these columns (CP-37)."""
    spec_id: int
    key_field_ids: tuple[int, ...]
    replace_prefix: tuple[str, ...]
    snapshot_properties: Mapping[str, str]
    row_lineage: bool
    """Whether the files store the row ids of updated rows."""
    is_staged: bool
    """SP-23: the snapshot is staged, and no branch moves to it."""
    checks: Mapping[str, str]
    """The CHECK constraints that Spark checks the rows against."""
    range_partitions: str | None = None
    """RP-5: the table property with the range partitions that tasks check the rows against."""
    refused_rows_table: tuple[str, ...] | None = None
    """The table to which refused rows are diverted; None: they fail the write."""
    interval: Interval | None = None
    """RP-19: the interval that the rows replace."""
    allow_outside: bool = False
    """RP-24: whether rows that do not match the condition of an overwrite are added."""
    validation: OverwriteValidation | None = None
    """SP-47: the conflict check of an overwrite."""
    batch: tuple[str, str] | None = None
    """SP-99: the application id and the batch id that the caller gave."""
    operation: str = ""
    """SP-106: the operation that is applied with the rows, besides adding them."""
    replace_equal: tuple[str, ...] = ()
    """SQ-34: the rows replace stored rows with the same values in these columns."""
    order_by: tuple[str, ...] = ()
    """SP-98: the columns whose values tasks report for each message."""
    on_stale: str = "ignore"
    """SP-111: how messages that are older than the stored ones are handled."""
    sort_order_id: int | None = None
    """SQ-5: for a table without a key, the sort order in which Spark arranges rows."""

    @classmethod
    def from_json(cls, target: Mapping[str, Any]) -> WriteTarget:
        names = ("table", "key_field_ids", "replace_prefix", "replace_equal", "refused_rows_table", "batch", "order_by")
        tuples = {name: tuple(target[name]) for name in names if target.get(name) is not None}
        given = target.get("interval")
        interval = None if given is None else Interval(tuple(given["on"]), given["lower"], given["upper"])
        validation = None if target.get("validation") is None else OverwriteValidation(**target["validation"])
        return cls(**{**target, **tuples, "interval": interval, "validation": validation})

    def load(self, session: Session) -> Table:
        """The current table. Raises TableFormatError if its name now belongs to another table."""
        table = session.load(self.table, branch=self.branch)
        self.check_uuid(table.metadata)
        return table

    def load_to_commit(self, session: Session) -> Table:
        """CK-3: the current table. Raises CommitConflictError if its CHECK constraints have changed."""
        table = self.load(session)
        if check_conditions(table.metadata.properties) != self.checks:
            raise CommitConflictError(
                f"the CHECK constraints of {'.'.join(self.table)} were changed while rows were written. Nothing was "
                "changed. Run the statement again; a stream must be restarted."
            )
        return table

    def check_uuid(self, metadata: TableMetadata) -> None:
        if str(metadata.table_uuid) != self.table_uuid:
            raise TableFormatError(
                f"table {'.'.join(self.table)} was dropped and another table was created with the same name while "
                "rows were written. Nothing was changed. Run the statement again."
            )

    def context(self, table: Table) -> WriteContext:
        """The context that the files were written in, regardless of the table's current schema and default spec."""
        current = WriteContext.of(table.metadata, table.iceberg.io)
        context = replace(
            current,
            schema=Schema.model_validate_json(self.schema),
            spec=current.spec_of(self.spec_id),
            key_field_ids=self.key_field_ids,
            sort_order_id=self._sort_order_id(current),
        )
        return context.with_row_lineage() if self.row_lineage else context

    def _sort_order_id(self, current: WriteContext) -> int | None:
        if not self.key_field_ids:
            return self.sort_order_id
        return current.sort_order_id if self.key_field_ids == current.key_field_ids else None

    def held_against(self, context: WriteContext) -> WriteContext:
        """The context with the range partitions that tasks checked the rows against."""
        return replace(context, properties=with_range_partitions(context.properties, self.range_partitions))

    @property
    def held_properties(self) -> dict[str, str]:
        """RP-6: the range partitions that tasks checked each row against. The commit compares them with the current
        ones."""
        return with_range_partitions({}, self.range_partitions)


@method("plan_write")
def plan_write(session: Session, request: Request) -> dict[str, Any]:
    """The plan for executors, and the target that the commit needs.

    `mode` is "append", "overwrite", "overwrite-partitions" or "delta"; `options` are the options of the statement.
    """
    pin = Pin.from_json(request.arguments["pin"])
    table = session.pinned(pin)
    refuse_table_of_another_lake(session.catalog.iceberg, table.iceberg)
    given = options_of_write(request.arguments["options"], request.arguments["settings"])
    options = WriteOptions.parse(given, table=table.name, default_branch=pin.branch)
    _check_mode(options, request.arguments["mode"])
    if options.operation.name and is_staged(pin.table):
        raise InvalidArgumentError(
            f"option {OPERATION} requires an existing table, but this statement creates or replaces one. Nothing was "
            "written. Create the table first, and append to it."
        )
    if options.batch is not None and request.arguments.get("is_stream"):
        raise InvalidArgumentError(
            f"options {APPLICATION_ID} and {BATCH_ID} identify a batch, but batches of a stream already have names: "
            "each is committed once. Remove the options."
        )
    wap = WriteAuditPublish() if is_staged(pin.table) else WriteAuditPublish.of(request.arguments, table)
    options = replace(
        options,
        branch=wap.branch_written(
            session, table, options.branch, is_named=options.names_branch or names_state(request, pin)
        ),
        snapshot_properties={**options.snapshot_properties, **wap.snapshot_properties},
    )
    if options.branch not in table.metadata.refs and options.branch != pin.branch:
        session.load(pin.table, branch=options.branch)
    refused_rows_table = _refused_rows_table(session, table, request.arguments.get("refused_rows_table"))
    return describe_write(
        table,
        options,
        command=request.arguments.get("command"),
        row_lineage=request.arguments["row_lineage"],
        is_staged=wap.wap_id is not None,
        range_partitions=session.load(pin.table).metadata.properties.get(RANGE_PARTITIONS),
        refused_rows_table=refused_rows_table,
    )


def _check_mode(options: WriteOptions, mode: str) -> None:
    """Like PR-3, for options: raise InvalidArgumentError for an option that has no effect in this mode."""
    given = {
        REPLACE_PREFIX: options.replace_prefix,
        REPLACE_EQUAL: options.replace_equal,
        REPLACE_INTERVAL: options.interval,
    }
    replacing = next((name for name, value in given.items() if value), None)
    if options.operation.name and mode != APPEND:
        raise InvalidArgumentError(
            f"option {OPERATION} requires an append, as in df.writeTo(...).append(), but this is a write of mode "
            f"{mode!r}. Nothing was written."
        )
    if replacing and mode != APPEND:
        raise InvalidArgumentError(f"option {replacing} requires an append; this write already overwrites.")
    if options.refused_rows_table is not None and mode == DELTA:
        raise InvalidArgumentError(
            f"option {ON_REFUSED} = 'divert' is only supported for INSERT and other appends, because a rejected "
            "update would lose its row."
        )
    if options.allow_outside and mode != OVERWRITE:
        raise InvalidArgumentError(f"option {ALLOW_OUTSIDE} requires an overwrite by a condition.")
    if options.validation is not None and mode not in (OVERWRITE, OVERWRITE_PARTITIONS):
        raise InvalidArgumentError(
            f"option {ISOLATION_LEVEL} requires an overwrite, because an append replaces no rows. For DELETE, UPDATE "
            f"and MERGE, set the table properties write.delete.{ISOLATION_LEVEL}, write.update.{ISOLATION_LEVEL} and "
            f"write.merge.{ISOLATION_LEVEL}."
        )


def _refused_rows_table(session: Session, table: Table, name: Sequence[str] | None) -> tuple[str, ...] | None:
    """The table that takes refused rows; checked before any row is written."""
    if name is None:
        return None
    refused = session.load(tuple(name))
    if refused.metadata.table_uuid == table.metadata.table_uuid:
        raise InvalidArgumentError(
            f"option {REFUSED_ROWS_TABLE}: rows that {table.name} rejects cannot be written to the table itself."
        )
    refuse_table_of_another_lake(session.catalog.iceberg, refused.iceberg)
    check_takes_refused_rows(refused, table.metadata.schema())
    return tuple(name)


def describe_write(
    table: Table,
    options: WriteOptions,
    *,
    row_lineage: bool,
    is_staged: bool,
    range_partitions: str | None,
    refused_rows_table: tuple[str, ...] | None,
    command: str | None = None,
) -> dict[str, Any]:
    """The write of rows in the table's current schema and default spec. With `row_lineage`, the lineage columns follow.

    `range_partitions` are the current ranges. A stream keeps the table of its start, and it does not stop because a
    range was added.
    """
    metadata = table.metadata
    if metadata.format_version < 2:
        raise UnsupportedFeatureError(
            f"table {table.name} has format version 1; upgrade it to version 2 to write to it."
        )
    context = WriteContext.of(metadata, table.iceberg.io)
    context = replace(
        context,
        spec=context.spec if options.output_spec_id is None else _output_spec(metadata, options.output_spec_id),
        properties={**with_range_partitions(context.properties, range_partitions), **options.properties},
    )
    order = _order(metadata, context)
    target = WriteTarget(
        table=tuple(table.iceberg.name()),
        table_uuid=str(metadata.table_uuid),
        branch=options.branch,
        schema=context.schema.model_dump_json(),
        spec_id=context.spec.spec_id,
        key_field_ids=context.key_field_ids,
        **replacement(options, context, table=table.name),
        snapshot_properties=dict(options.snapshot_properties),
        row_lineage=row_lineage,
        is_staged=is_staged,
        checks=check_conditions(metadata.properties),
        range_partitions=range_partitions,
        refused_rows_table=refused_rows_table,
        interval=options.interval,
        allow_outside=options.allow_outside,
        validation=options.validation,
        batch=options.batch,
        operation=options.operation.name,
        replace_equal=checked_columns(context.schema, options.replace_equal),
        sort_order_id=_sort_order_id(metadata, order),
    )
    if options.interval is not None:
        options.interval.inside(context.schema)
    ranges = range_plan(context)
    return {
        "target": asdict(target),
        "columns": field_trees((context.with_row_lineage() if row_lineage else context).schema.fields),
        **key_plan(context, target.replace_prefix, target.order_by),
        "equal": target.replace_equal,
        "footer": _footer(context),
        "partition": [_partition_field(field, context.schema) for field in context.spec.fields],
        "order": order,
        **_spread(command, context, order, options),
        **_files_plan(table, context),
        "ranges": ranges,
        "sorts_by_place": ranges is not None and ranges["borders"] is not None and not is_sorted_by_place(context),
        "diverts": refused_rows_table is not None,
        **options.operation.plan(),
    }


def _files_plan(table: Table, context: WriteContext) -> dict[str, Any]:
    """Where data files are written, and how."""
    return {
        "stems": _stems(context),
        "codec": compression_codec(context.properties),
        "level": context.properties.get(COMPRESSION_LEVEL),
        "target_file_size_bytes": context.target_file_size_bytes,
        "row_group_limit": context.row_group_limit,
        "bloom_filters": bloom_filters(context.bloom_filters),
        "s3": s3_options(table.iceberg.io),
    }


def _output_spec(metadata: TableMetadata, spec_id: int) -> PartitionSpec:
    """SP-48: the partition spec with this id. Raises InvalidArgumentError if rows of the current schema cannot be
    partitioned by it."""
    specs, schema = metadata.specs(), metadata.schema()
    if spec_id not in specs:
        known = ", ".join(map(str, sorted(specs)))
        raise InvalidArgumentError(f"option {OUTPUT_SPEC_ID}: the table has no partition spec {spec_id}, only {known}.")
    gone = [
        field.name
        for field in specs[spec_id].fields
        if not isinstance(field.transform, VoidTransform) and schema.find_column_name(field.source_id) is None
    ]
    if gone:
        raise InvalidArgumentError(
            f"option {OUTPUT_SPEC_ID}: the column of field {gone[0]!r} of partition spec {spec_id} was dropped. Choose "
            "another spec."
        )
    return specs[spec_id]


def with_range_partitions(properties: Mapping[str, str], range_partitions: str | None) -> dict[str, str]:
    """Table properties with these range partitions instead of their own; without range partitions if None."""
    others = {name: value for name, value in properties.items() if name != RANGE_PARTITIONS}
    return others if range_partitions is None else {**others, RANGE_PARTITIONS: range_partitions}


def _footer(context: WriteContext) -> dict[str, str]:
    """RD-11: the marker that rows are sorted by key. It is left out for uuid columns: Spark has uuids as text, whose
    order depends on the spelling."""
    key = context.key_field_ids
    if not context.sorts_rows or any(isinstance(context.schema.find_type(field_id), UUIDType) for field_id in key):
        return {}
    return {SORTED_BY.decode(): marker_bytes(key).decode()}


def _partition_field(field: PartitionField, schema: Schema) -> dict[str, Any]:
    name = _TRANSFORMS.get(type(field.transform))
    if name is None:
        raise UnsupportedFeatureError(
            f"partition field {field.name!r} uses the transform {field.transform}, which cannot be written from Spark."
        )
    described: dict[str, Any] = {"transform": name}
    if name != "void":
        described["column"] = path_of(schema, field.source_id)
        described["uuid"] = isinstance(schema.find_type(field.source_id), UUIDType)
    if isinstance(field.transform, BucketTransform):
        described["width"] = field.transform.num_buckets
    elif isinstance(field.transform, TruncateTransform):
        described["width"] = field.transform.width
    return described


def _sort_order_id(metadata: TableMetadata, order: Sequence[dict[str, Any]]) -> int | None:
    """SQ-5: the id of the table's sort order, if Spark's order is the same; else None. It differs for uuid columns,
    which Spark sorts as text."""
    current, schema = metadata.sort_order(), metadata.schema()
    is_whole = 0 < len(order) == len(current.fields)
    is_same = is_whole and not any(isinstance(schema.find_type(each.source_id), UUIDType) for each in current.fields)
    return current.order_id if is_same else None


def _order(metadata: TableMetadata, context: WriteContext) -> list[dict[str, Any]]:
    """SQ-5: the sort order of a table without a key. In a table with a key, rows are sorted by the key (FM-6)."""
    if context.key_field_ids:
        return []
    return [
        {
            **spark_transform(field.transform, path_of(context.schema, field.source_id)),
            "descends": field.direction is SortDirection.DESC,
            "nulls_first": field.null_order is NullOrder.NULLS_FIRST,
        }
        for field in metadata.sort_order().fields
        if type(field.transform) in _TRANSFORMS
        and not isinstance(field.transform, VoidTransform)
        and context.schema.find_column_name(field.source_id) is not None
    ]


def _distribution(context: WriteContext, order: Sequence[dict[str, Any]]) -> str:
    """How Spark distributes the rows over its tasks: "none"; "hash" by partition; "range" by partition and key or
    order."""
    if DISTRIBUTION in context.properties:
        mode = property_one_of(context.properties, DISTRIBUTION, DISTRIBUTION_MODES)
    else:
        mode = "none" if is_unpartitioned(context.spec) else "hash"
    has_order = context.sorts_rows or bool(order)
    return "none" if is_unpartitioned(context.spec) and not (mode == "range" and has_order) else mode


def _distribution_of(command: str, context: WriteContext, order: Sequence[dict[str, Any]]) -> str:
    """SP-52: the distribution that the table sets for the statement. By default, positions to delete stay in the task
    that found them, and new rows are distributed like the rows of an INSERT."""
    name = f"write.{command}.distribution-mode"
    if name in context.properties:
        return property_one_of(context.properties, name, DISTRIBUTION_MODES)
    return "none" if command == "delete" else _distribution(context, order)


def _spread(
    command: str | None, context: WriteContext, order: Sequence[dict[str, Any]], options: WriteOptions
) -> dict[str, Any]:
    """How Spark distributes rows over tasks for this row-level statement, or for INSERT and similar statements if
    `command` is None. SP-55: also the bytes that a task should get; None leaves this to the size of the files."""
    size = ADVISORY_PARTITION_SIZE
    if command is not None and DISTRIBUTION in options.properties:
        said = {f"write.{command}.distribution-mode": options.properties[DISTRIBUTION]}
        context = replace(context, properties={**context.properties, **said})
    return {
        "distribution": _distribution(context, order) if command is None else _distribution_of(command, context, order),
        "advisory_bytes": positive_int(context.properties, size, 1) if size in context.properties else None,
    }


def _stems(context: WriteContext) -> Sequence[str]:
    """Prefixes for the locations of new files. All of them are locations that the table's location provider chose."""
    write_id = uuid.uuid4()
    names = [f"{number:02d}-{write_id}" for number in range(_STEM_COUNT)]
    stems = [context.location_provider.new_data_location(name) for name in names]
    directories = {stem.rpartition("/")[0] for stem in stems}
    return list(itertools.islice(stems, 1)) if len(directories) == 1 else stems
