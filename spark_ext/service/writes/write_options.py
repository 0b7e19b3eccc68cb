"""Options of a write: `df.writeTo("lake.db.t").option("replace-prefix", "id1,id2")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.errors import InvalidArgumentError, UnknownOptionError
from tableformat.properties import COMPRESSION_CODEC, TARGET_FILE_SIZE_BYTES

REPLACE_PREFIX: Final = "replace-prefix"
BRANCH: Final = "branch"
DISTRIBUTION_MODE: Final = "distribution-mode"
DISTRIBUTION_MODES: Final = ("none", "hash", "range")
SNAPSHOT_PROPERTY: Final = "snapshot-property."
_PROPERTY_OF_OPTION: Final = {
    "target-file-size-bytes": TARGET_FILE_SIZE_BYTES,
    "compression-codec": COMPRESSION_CODEC,
    DISTRIBUTION_MODE: "write.distribution-mode",
}
"""Options that stand in for a table property, for one write."""
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "path"})
"""What Spark's own writers leave among the options."""
_KNOWN: Final = (REPLACE_PREFIX, BRANCH, *_PROPERTY_OF_OPTION, f"{SNAPSHOT_PROPERTY}<name>")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    replace_prefix: tuple[str, ...]
    """Leading key columns: the prefixes that occur in the rows are deleted by the commit. Empty: nothing is."""
    branch: str
    snapshot_properties: Mapping[str, str]
    """Added to the snapshot's summary."""
    properties: Mapping[str, str]
    """Table properties that this write goes by instead of the table's."""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, table: str, default_branch: str = MAIN_BRANCH) -> WriteOptions:
        """Names are case-insensitive. Raises UnknownOptionError for one that nothing reads."""
        prefix: tuple[str, ...] = ()
        branch, snapshot_properties, properties = default_branch, {}, {}
        for given, value in options.items():
            name = given.casefold()
            if name in _OF_SPARK:
                continue
            if name == REPLACE_PREFIX:
                prefix = _names(value)
            elif name == BRANCH:
                branch = value
            elif name.startswith(SNAPSHOT_PROPERTY):
                snapshot_properties[given[len(SNAPSHOT_PROPERTY) :]] = value
            elif name in _PROPERTY_OF_OPTION:
                properties[_PROPERTY_OF_OPTION[name]] = value
            else:
                raise UnknownOptionError(given, _KNOWN, where=f"a write to {table}")
        return cls(prefix, branch, snapshot_properties, properties)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidArgumentError(f"option {REPLACE_PREFIX} lists columns, such as 'id1,id2', not {text!r}.")
    return names
