"""The key of a table as a property of a statement, for Spark before 4.1, which has no PRIMARY KEY in its grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tableformat.errors import InvalidArgumentError

KEY: Final = "tableformat.key"
"""`TBLPROPERTIES ('tableformat.key' = 'a, b')`: the key columns in key order. The table does not store this property;
FM-4 defines how the key is stored."""


def key_of(arguments: Mapping[str, Any]) -> Sequence[str]:
    """The key columns of a CREATE or REPLACE TABLE, from PRIMARY KEY or from the property. Empty without a key."""
    text = arguments["properties"].get(KEY)
    if text is None:
        return list(arguments["key"])
    if arguments["key"]:
        raise InvalidArgumentError(
            f"PRIMARY KEY and the table property {KEY!r} both define the key; pass only one of them."
        )
    return key_columns(text)


def key_columns(text: str) -> Sequence[str]:
    """The columns in a value of the property."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidArgumentError(f"table property {KEY!r} must be a list of columns, such as 'a, b', not {text!r}.")
    return names
