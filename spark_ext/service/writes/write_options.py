"""Options of a write: `df.writeTo("lake.db.t").option("replace-prefix", "id1,id2")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.states.option_values import warn_of_idle_options
from spark_ext.service.writes.equal_replacement import REPLACE_EQUAL, equal_columns
from spark_ext.service.writes.overwrite_validation import OverwriteValidation
from spark_ext.service.writes.row_operation import NO_OPERATION, OP_COLUMN, OPERATION, RowOperation
from tableformat.commit.snapshot_summary import check_own_names
from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError, UnsupportedFeatureError
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.stale_rows import ON_STALE as STALE_CHOICES
from tableformat.operations.verbs.replace_interval import inside_interval
from tableformat.properties import COMPRESSION_CODEC, COMPRESSION_LEVEL, ISOLATION_LEVELS, TARGET_FILE_SIZE_BYTES
from tableformat.range_partitions.range_text import parse_end
from tableformat.write.rows.replaced_range_checks import RowsInSpans
from tableformat.write.rows.replacing_rows import order_columns

REPLACE_PREFIX: Final = "replace-prefix"
ORDER_BY: Final = "order-by"
APPLICATION_ID: Final = "application-id"
BATCH_ID: Final = "batch-id"
BRANCH: Final = "branch"
DISTRIBUTION_MODE: Final = "distribution-mode"
DISTRIBUTION: Final = "write.distribution-mode"
DISTRIBUTION_MODES: Final = ("none", "hash", "range")
ADVISORY_PARTITION_SIZE: Final = "write.spark.advisory-partition-size-bytes"
SNAPSHOT_PROPERTY: Final = "snapshot-property."
ON_REFUSED: Final = "on-refused"
ON_STALE: Final = "on-stale"
REFUSED_ROWS_TABLE: Final = "refused-rows-table"
REPLACE_INTERVAL: Final = "replace-interval"
LOWER: Final = "lower"
UPPER: Final = "upper"
ALLOW_OUTSIDE: Final = "allow-outside"
ISOLATION_LEVEL: Final = "isolation-level"
VALIDATE_FROM: Final = "validate-from-snapshot-id"
OUTPUT_SPEC_ID: Final = "output-spec-id"
_PROPERTY_OF_OPTION: Final = {
    "target-file-size-bytes": TARGET_FILE_SIZE_BYTES,
    "compression-codec": COMPRESSION_CODEC,
    "compression-level": COMPRESSION_LEVEL,
    DISTRIBUTION_MODE: DISTRIBUTION,
    "advisory-partition-size": ADVISORY_PARTITION_SIZE,
}
"""Options that replace a table property for one write."""
_FLAGS: Final = ("true", "false")
_SAID_ANYWAY: Final = {"write-format": "parquet", "delete-format": "parquet", "check-nullability": "true"}
"""Options of Iceberg's source that allow only one value here, which states what is always done."""
_IDLE: Final = (
    "check-ordering",
    "compression-strategy",
    "delete-granularity",
    "fanout-enabled",
    "shred-variants",
    "target-delete-file-size-bytes",
    "use-merge-append-for-streaming",
    "variant-inference-buffer-size",
)
"""Options of Iceberg's source that do not affect any row and are ignored here (SP-27)."""
_MERGE_SCHEMA: Final = ("merge-schema", "mergeschema")
OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "path"})
"""Options that Spark's own writers add."""
_KNOWN: Final = (
    *(
        REPLACE_PREFIX,
        REPLACE_EQUAL,
        OPERATION,
        OP_COLUMN,
        ORDER_BY,
        APPLICATION_ID,
        BATCH_ID,
        REPLACE_INTERVAL,
        LOWER,
        UPPER,
        ALLOW_OUTSIDE,
        BRANCH,
        ON_REFUSED,
        ON_STALE,
        REFUSED_ROWS_TABLE,
    ),
    *(ISOLATION_LEVEL, VALIDATE_FROM, OUTPUT_SPEC_ID),
    *(*_PROPERTY_OF_OPTION, f"{SNAPSHOT_PROPERTY}<name>"),
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    replace_prefix: tuple[str, ...]
    """Leading key columns: the commit deletes the prefixes that occur in the rows. Empty: it deletes none."""
    branch: str
    names_branch: bool
    """Whether the option `branch` names the branch, and not the table or the session."""
    snapshot_properties: Mapping[str, str]
    """Added to the snapshot's summary."""
    properties: Mapping[str, str]
    """Table properties of this write, which override those of the table."""
    on_refused: str = "fail"
    """RP-5: how rows that no range partition covers are handled: "fail", or "divert" to `refused_rows_table`."""
    refused_rows_table: str | None = None

    interval: Interval | None = None
    """RP-19: the interval that is replaced, regardless of the rows."""
    allow_outside: bool = False
    """RP-24: whether rows that do not match the condition of an overwrite are added too."""
    validation: OverwriteValidation | None = None
    """SP-47: the conflict check of an overwrite. None: it is checked against commits after the snapshot that the
    statement read."""
    output_spec_id: int | None = None
    """SP-48: the partition spec of new data files; None: the default spec of the table."""
    order_by: tuple[str, ...] = ()
    """SP-98: the columns that distinguish older from newer messages of a prefix."""
    batch: tuple[str, str] | None = None
    """SP-99: the application id and the batch id that the caller gives."""
    operation: RowOperation = NO_OPERATION
    """SP-106: the operation that is applied with the rows, besides adding them."""
    replace_equal: tuple[str, ...] = ()
    """SQ-34: the commit deletes rows with the same values in these columns. Empty: it deletes none."""
    on_stale: str = "ignore"
    """SP-111: how messages that are older than the stored ones are handled: "ignore" or "error"."""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, table: str, default_branch: str = MAIN_BRANCH) -> WriteOptions:
        """The options of a write; their names are case-insensitive. Raises UnknownOptionError for an option that does
        not exist, and InvalidArgumentError for an invalid value, or for one that cannot be added to a summary (FM-23).
        """
        named, snapshot_properties, properties = {}, {}, {}
        for given, value in options.items():
            name = given.casefold()
            if name in OF_SPARK:
                continue
            if name.startswith(SNAPSHOT_PROPERTY):
                snapshot_properties[given[len(SNAPSHOT_PROPERTY) :]] = value
            elif name in _SAID_ANYWAY:
                _check_said_anyway(given, value, table)
            elif name in _IDLE:
                warn_of_idle_options([name], _IDLE, where=f"a write to {table}")
            elif name in _MERGE_SCHEMA:
                _refuse_merged_schema(given, value, table)
            elif name in _PROPERTY_OF_OPTION:
                properties[_PROPERTY_OF_OPTION[name]] = value
            elif name in _KNOWN:
                named[name] = value
            else:
                raise UnknownOptionError(given, _KNOWN, where=f"a write to {table}")
        check_own_names(snapshot_properties)
        on_refused = one_of(named.get(ON_REFUSED, "fail").casefold(), ("fail", "divert"), option=ON_REFUSED)
        _check_refused(on_refused, named.get(REFUSED_ROWS_TABLE))
        return cls(
            replace_prefix=_names(named[REPLACE_PREFIX], REPLACE_PREFIX) if REPLACE_PREFIX in named else (),
            branch=named.get(BRANCH, default_branch),
            names_branch=BRANCH in named,
            snapshot_properties=snapshot_properties,
            properties=properties,
            on_refused=on_refused,
            refused_rows_table=named.get(REFUSED_ROWS_TABLE),
            interval=_interval(named),
            allow_outside=one_of(named.get(ALLOW_OUTSIDE, "false").casefold(), _FLAGS, option=ALLOW_OUTSIDE) == "true",
            validation=_validation(named),
            output_spec_id=_whole_number(named, OUTPUT_SPEC_ID, "a partition spec"),
            order_by=_order_by(named, on_refused),
            batch=_batch(named),
            operation=RowOperation.parse(named),
            replace_equal=equal_columns(named),
            on_stale=_on_stale(named),
        )


@dataclass(frozen=True, slots=True)
class Interval:
    """`replace-interval` = columns, with `lower` and `upper` as text (RP-23). It is part of the write's target."""

    on: tuple[str, ...]
    lower: str | None
    upper: str | None

    def inside(self, schema: Schema) -> RowsInSpans:
        """RP-19: the interval that rows must lie in, as spans."""
        known = [field.name for field in schema.fields]
        for name in self.on:
            if name not in known:
                raise UnknownColumnError(name, known, where=f"option {REPLACE_INTERVAL}")
        columns = KeyColumns.of(schema, [schema.find_field(name).field_id for name in self.on])
        lower, upper = (None if end is None else parse_end(end, self.on, schema) for end in (self.lower, self.upper))
        return inside_interval(columns, lower, upper)


def _validation(named: Mapping[str, str]) -> OverwriteValidation | None:
    level, since = named.get(ISOLATION_LEVEL), named.get(VALIDATE_FROM)
    if level is None:
        if since is not None:
            raise InvalidArgumentError(
                f"option {VALIDATE_FROM} requires {ISOLATION_LEVEL} ({', '.join(ISOLATION_LEVELS)}): without it, "
                "nothing is validated."
            )
        return None
    return OverwriteValidation(
        one_of(level.casefold(), ISOLATION_LEVELS, option=ISOLATION_LEVEL),
        _whole_number(named, VALIDATE_FROM, "a snapshot"),
    )


def _whole_number(named: Mapping[str, str], option: str, what: str) -> int | None:
    """The id in an option; None if the option is not given."""
    text = named.get(option)
    if text is not None and not text.strip().isdecimal():
        raise InvalidArgumentError(f"option {option} must be the id of {what}, not {text!r}.")
    return None if text is None else int(text)


def _order_by(named: Mapping[str, str], on_refused: str) -> tuple[str, ...]:
    if ORDER_BY not in named:
        return ()
    if REPLACE_PREFIX not in named and OPERATION not in named:
        raise InvalidArgumentError(
            f"option {ORDER_BY} requires {REPLACE_PREFIX} or {OPERATION}: it defines which rows of a prefix or key "
            "are kept."
        )
    if on_refused == "divert":
        raise UnsupportedFeatureError(
            f"options {ORDER_BY} and {ON_REFUSED} = 'divert' cannot be combined, because files that lose diverted "
            "rows are rewritten. Nothing was written. Filter the rows first, or use table.replace() in Python."
        )
    prefix = _names(named[REPLACE_PREFIX], REPLACE_PREFIX) if REPLACE_PREFIX in named else ()
    return order_columns(_names(named[ORDER_BY], ORDER_BY), prefix)


def _on_stale(named: Mapping[str, str]) -> str:
    """SP-111: the option `on-stale`."""
    on_stale = one_of(named.get(ON_STALE, "ignore").casefold(), STALE_CHOICES, option=ON_STALE)
    if ON_STALE in named and REPLACE_PREFIX not in named and OPERATION not in named:
        raise InvalidArgumentError(
            f"option {ON_STALE} requires {REPLACE_PREFIX} or {OPERATION}: other writes do not compare messages."
        )
    if on_stale == "divert":
        raise UnsupportedFeatureError(
            f"option {ON_STALE} = 'divert' is not supported, because a statement returns no rows. Nothing was "
            "written. Use 'ignore' or 'error', or table.replace(rows, on_stale='divert') in Python."
        )
    return on_stale


def _batch(named: Mapping[str, str]) -> tuple[str, str] | None:
    application_id, batch_id = named.get(APPLICATION_ID), named.get(BATCH_ID)
    if application_id is None and batch_id is None:
        return None
    if application_id is None or batch_id is None:
        raise InvalidArgumentError(
            f"options {APPLICATION_ID} and {BATCH_ID} identify a batch together: pass both or neither."
        )
    return application_id, batch_id


def _interval(named: Mapping[str, str]) -> Interval | None:
    lower, upper = named.get(LOWER), named.get(UPPER)
    if REPLACE_INTERVAL not in named:
        if lower is not None or upper is not None:
            name = LOWER if lower is not None else UPPER
            raise InvalidArgumentError(f"option {name} requires {REPLACE_INTERVAL}, which lists the columns.")
        return None
    if lower is None and upper is None:
        raise InvalidArgumentError(
            f"option {REPLACE_INTERVAL} needs {LOWER}, {UPPER} or both: without them, every row would be replaced."
        )
    if REPLACE_PREFIX in named:
        raise InvalidArgumentError(f"options {REPLACE_INTERVAL} and {REPLACE_PREFIX} cannot be combined.")
    return Interval(_names(named[REPLACE_INTERVAL], REPLACE_INTERVAL), lower, upper)


def _check_refused(on_refused: str, refused_rows_table: str | None) -> None:
    """Check that diverted rows have a table to go to: a statement returns no rows."""
    if on_refused == "divert" and not refused_rows_table:
        raise InvalidArgumentError(
            f"option {ON_REFUSED} = 'divert' needs {REFUSED_ROWS_TABLE}, a table for the rejected rows."
        )
    if on_refused != "divert" and refused_rows_table is not None:
        raise InvalidArgumentError(f"option {REFUSED_ROWS_TABLE} requires {ON_REFUSED} = 'divert'.")


def _refuse_merged_schema(given: str, value: str, table: str) -> None:
    """SP-82: raise UnsupportedFeatureError if a write that cannot add columns asks for it. The Java part of the catalog
    removes this option from writes that can."""
    if value.casefold() != "false":
        raise UnsupportedFeatureError(
            f"option {given} of a write to {table} is not supported here. Nothing was written. It adds columns in "
            "df.writeTo() and df.write of Spark 4.0 and newer, in a session with the SQL extension, and in streams. "
            "Use ALTER TABLE ... ADD COLUMN, or INSERT WITH SCHEMA EVOLUTION (Spark 4.2 and newer)."
        )


def _check_said_anyway(name: str, value: str, table: str) -> None:
    always = _SAID_ANYWAY[name.casefold()]
    if value.casefold() != always:
        raise InvalidArgumentError(f"option {name} of a write to {table} must be {always!r}, not {value!r}.")


def _names(text: str, option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidArgumentError(f"option {option} must list columns, such as 'id1,id2', not {text!r}.")
    return names
