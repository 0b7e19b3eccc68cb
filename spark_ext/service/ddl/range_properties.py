"""Range partitions as properties of a statement: `TBLPROPERTIES ('range-partitions.on' = 'year', ...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.definition_text import range_partitions_of_text, texts_of_range_partitions
from tableformat.range_partitions.model import RangePartitions
from tableformat.range_partitions.property_text import range_partitions_of

PREFIX: Final = "range-partitions."
"""The prefix of these properties. The table stores a single property instead (RP-1)."""


def is_range_property(name: str) -> bool:
    return name.startswith(PREFIX)


def range_partitions_of_statement(properties: Mapping[str, str], schema: Schema) -> RangePartitions | None:
    """RP-23: the range partitions of a CREATE or REPLACE TABLE; None if the statement defines none."""
    texts = {name.removeprefix(PREFIX): text for name, text in properties.items() if is_range_property(name)}
    return range_partitions_of_text(texts, schema, where=f"TBLPROPERTIES {PREFIX}*") if texts else None


def range_partitions_as_properties(properties: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """SQ-9: the properties in the form of a statement that creates the same table under another name. Range partitions
    that this version does not support are shown in their stored form."""
    if RANGE_PARTITIONS not in properties:
        return dict(properties)
    try:
        defined = range_partitions_of(properties, schema)
    except UnsupportedFeatureError:
        return dict(properties)
    assert defined is not None, "the property exists"
    others = {name: value for name, value in properties.items() if name != RANGE_PARTITIONS}
    return others | {PREFIX + name: text for name, text in texts_of_range_partitions(defined).items()}


def refuse_range_property(name: str) -> None:
    """Reject these properties in ALTER TABLE, which could change one of several that are only valid together."""
    if is_range_property(name):
        raise InvalidArgumentError(
            f"{name!r} can only be set in CREATE TABLE. Nothing was changed. CALL system.alter_range_partitions(...) "
            "changes range partitions; CALL system.define_range_partitions(...) adds them to a table without any."
        )
