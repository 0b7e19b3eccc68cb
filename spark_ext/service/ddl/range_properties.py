"""Range partitions as properties of a statement: `TBLPROPERTIES ('range-partitions.on' = 'year', ...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError
from tableformat.range_partitions.definition_text import range_partitions_of_text
from tableformat.range_partitions.model import RangePartitions

PREFIX: Final = "range-partitions."
"""The table does not keep these: it has one property (RP-1)."""


def is_range_property(name: str) -> bool:
    return name.startswith(PREFIX)


def range_partitions_of_statement(properties: Mapping[str, str], schema: Schema) -> RangePartitions | None:
    """RP-23: what a CREATE or REPLACE TABLE says; None where it says nothing."""
    texts = {name.removeprefix(PREFIX): text for name, text in properties.items() if is_range_property(name)}
    return range_partitions_of_text(texts, schema, where=f"TBLPROPERTIES {PREFIX}*") if texts else None


def refuse_range_property(name: str) -> None:
    """ALTER TABLE would change one of several that say something together only."""
    if is_range_property(name):
        raise InvalidArgumentError(
            f"{name!r} belongs to CREATE TABLE. CALL system.alter_range_partitions(...) changes range partitions, "
            "CALL system.define_range_partitions(...) gives some to a table that has none. Nothing was changed."
        )
