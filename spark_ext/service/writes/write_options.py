"""Options of a write: `df.writeTo("lake.db.t").option("replace-prefix", "id1,id2")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.errors import InvalidArgumentError, UnknownOptionError
from tableformat.operations.options import one_of
from tableformat.properties import COMPRESSION_CODEC, TARGET_FILE_SIZE_BYTES

REPLACE_PREFIX: Final = "replace-prefix"
BRANCH: Final = "branch"
DISTRIBUTION_MODE: Final = "distribution-mode"
DISTRIBUTION_MODES: Final = ("none", "hash", "range")
SNAPSHOT_PROPERTY: Final = "snapshot-property."
ON_REFUSED: Final = "on-refused"
REFUSED_ROWS_TABLE: Final = "refused-rows-table"
_PROPERTY_OF_OPTION: Final = {
    "target-file-size-bytes": TARGET_FILE_SIZE_BYTES,
    "compression-codec": COMPRESSION_CODEC,
    DISTRIBUTION_MODE: "write.distribution-mode",
}
"""Options that stand in for a table property, for one write."""
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "path"})
"""What Spark's own writers leave among the options."""
_KNOWN: Final = (
    *(REPLACE_PREFIX, BRANCH, ON_REFUSED, REFUSED_ROWS_TABLE),
    *(*_PROPERTY_OF_OPTION, f"{SNAPSHOT_PROPERTY}<name>"),
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    replace_prefix: tuple[str, ...]
    """Leading key columns: the prefixes that occur in the rows are deleted by the commit. Empty: nothing is."""
    branch: str
    snapshot_properties: Mapping[str, str]
    """Added to the snapshot's summary."""
    properties: Mapping[str, str]
    """Table properties that this write goes by instead of the table's."""
    on_refused: str = "fail"
    """RP-5: what becomes of rows that no range partition covers: "fail", or "divert" to `refused_rows_table`."""
    refused_rows_table: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], *, table: str, default_branch: str = MAIN_BRANCH) -> WriteOptions:
        """Names are case-insensitive. Raises UnknownOptionError for one that nothing reads."""
        prefix: tuple[str, ...] = ()
        on_refused, refused_rows_table = "fail", None
        branch, snapshot_properties, properties = default_branch, {}, {}
        for given, value in options.items():
            name = given.casefold()
            if name in _OF_SPARK:
                continue
            if name == REPLACE_PREFIX:
                prefix = _names(value)
            elif name == BRANCH:
                branch = value
            elif name == ON_REFUSED:
                on_refused = one_of(value.casefold(), ("fail", "divert"), option=ON_REFUSED)
            elif name == REFUSED_ROWS_TABLE:
                refused_rows_table = value
            elif name.startswith(SNAPSHOT_PROPERTY):
                snapshot_properties[given[len(SNAPSHOT_PROPERTY) :]] = value
            elif name in _PROPERTY_OF_OPTION:
                properties[_PROPERTY_OF_OPTION[name]] = value
            else:
                raise UnknownOptionError(given, _KNOWN, where=f"a write to {table}")
        _check_refused(on_refused, refused_rows_table)
        return cls(prefix, branch, snapshot_properties, properties, on_refused, refused_rows_table)


def _check_refused(on_refused: str, refused_rows_table: str | None) -> None:
    """A statement returns no rows, so what is diverted needs a table."""
    if on_refused == "divert" and not refused_rows_table:
        raise InvalidArgumentError(
            f"option {ON_REFUSED} = 'divert' needs {REFUSED_ROWS_TABLE}, a table that takes the refused rows."
        )
    if on_refused != "divert" and refused_rows_table is not None:
        raise InvalidArgumentError(f"option {REFUSED_ROWS_TABLE} belongs to {ON_REFUSED} = 'divert'.")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidArgumentError(f"option {REPLACE_PREFIX} lists columns, such as 'id1,id2', not {text!r}.")
    return names
