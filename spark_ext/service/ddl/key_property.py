"""The key of a table as a property of a statement, for Spark before 4.1, whose grammar has no PRIMARY KEY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tableformat.errors import InvalidArgumentError

KEY: Final = "tableformat.key"
"""`TBLPROPERTIES ('tableformat.key' = 'a, b')`: the key columns in key order. The table does not keep it: FM-4 does."""


def key_of(arguments: Mapping[str, Any]) -> Sequence[str]:
    """The key columns that a CREATE or REPLACE TABLE names, by PRIMARY KEY or by the property; none for no key."""
    text = arguments["properties"].get(KEY)
    if text is None:
        return list(arguments["key"])
    if arguments["key"]:
        raise InvalidArgumentError(f"PRIMARY KEY and the table property {KEY!r} both say the key; give one.")
    return key_columns(text)


def key_columns(text: str) -> Sequence[str]:
    """The columns that a value of the property names."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidArgumentError(f"table property {KEY!r} is a list of columns, such as 'a, b', not {text!r}.")
    return names
