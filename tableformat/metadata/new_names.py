"""Checks the names of new tables, namespaces, branches, tags and columns.

Names of tables and namespaces become directories and keys of an object store. No name may lead out of the warehouse, or
have a special meaning for a store, a catalog's database or a terminal. A column cannot have the name of a column that
readers add. Existing objects can have any name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.alike_names import folded
from tableformat.metadata.change_columns import CHANGE_FIELDS, CHANGE_ORDINAL
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES

_SEPARATORS: Final = re.compile(r"[/\\]")
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "\\": "%5C"})
_NAME_BYTES_MAX: Final = 255
"""The maximum length of a name in common file systems."""
_CHANGE_FEED: Final = frozenset(field.name for field in (*CHANGE_FIELDS, CHANGE_ORDINAL))
_METADATA_COLUMNS: Final = frozenset({"_file", "_pos", "_spec_id", "_partition", "_deleted"})
_PRIVATE_PREFIX: Final = "__tableformat_"
"""The prefix of columns that jobs add to rows while they run."""


def check_new_name(parts: Sequence[str], kind: str) -> None:
    """Refuse a name of a namespace or table, given in parts, for which `directory_of` has no directory.

    Raises InvalidArgumentError, which shows the name with unprintable characters escaped.
    """
    if not parts:
        raise InvalidArgumentError(f"a {kind} needs a name.")
    for part in parts:
        _check_text(part, kind, parts)
        if not part.strip() or part != part.strip("."):
            raise _refusal(kind, parts, "a part of the name is empty, or begins or ends with a dot")
        if not all(step.strip(" .") for step in _SEPARATORS.split(part)):
            raise _refusal(kind, parts, "it refers to another directory")
        if len(directory_of(part).encode()) > _NAME_BYTES_MAX:
            raise _refusal(kind, parts, f"a part of the name has more than {_NAME_BYTES_MAX} bytes")


def directory_of(name: str) -> str:
    """The directory of a namespace or a table, for any separators in its name. No two have the same directory, and none
    is inside another."""
    return name.translate(_ESCAPES)


def check_new_ref_name(name: str, kind: str) -> None:
    """Refuse a name of a branch or tag that is blank or cannot be printed. It never becomes a path, so slashes and dots
    are allowed."""
    _check_text(name, kind, [name])
    if not name.strip():
        raise InvalidArgumentError(f"a {kind} needs a name, not {name!r}.")


def refuse_reserved_columns(schema: Schema, before: Schema | None = None) -> None:
    """FM-35: refuse a new column with the name of a column that readers add. Case is ignored, as in SQL.

    `before` is the schema that is changed; a column that it has under the same name is not new. Fields of structs can
    have any name. Raises InvalidArgumentError, which lists all such columns.
    """
    known = set() if before is None else {(field.field_id, field.name) for field in before.fields}
    new = (field.name for field in schema.fields if (field.field_id, field.name) not in known)
    refused = [f"column {name!r} has a reserved name: {why}" for name in new if (why := _why_reserved(folded(name)))]
    if refused:
        raise InvalidArgumentError(
            f"{'; '.join(refused)}. Nothing was changed. Choose another name; one without a leading underscore is "
            "never reserved."
        )


def _why_reserved(name: str) -> str:
    """The use of a reserved name; empty for other names."""
    if name in _CHANGE_FEED:
        return "the change feed adds a column of this name"
    if name in ROW_LINEAGE_NAMES:
        return "it is the name of a row lineage column"
    if name in _METADATA_COLUMNS:
        return "it is the name of an Iceberg metadata column, and Spark finds rows by these columns"
    return "maintenance jobs add columns with this prefix" if name.startswith(_PRIVATE_PREFIX) else ""


def _check_text(part: str, kind: str, parts: Sequence[str]) -> None:
    if not isinstance(part, str):
        raise InvalidArgumentError(f"a {kind} needs a name, not {part!r}.")
    # Cc: control characters, including the null byte. Cs: lone surrogates, which UTF-8 cannot encode.
    found = next((character for character in part if unicodedata.category(character) in ("Cc", "Cs")), None)
    if found is not None:
        raise _refusal(kind, parts, f"{found!r} is not allowed in a name")


def _refusal(kind: str, parts: Sequence[str], why: str) -> InvalidArgumentError:
    name = ".".join(map(str, parts))
    shown = name if len(name) <= 60 else f"{name[:60]}..."
    return InvalidArgumentError(f"{kind} {shown!r}: {why}. Nothing was created. Choose another name.")
