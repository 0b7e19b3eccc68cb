"""`KeyColumns`: the ordered columns of the bounds of a range delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.keys.families import family_of


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Field ids, names and types in key order: the key of the table (FM-4), or the columns of `on=`.

    >>> from pyiceberg.types import LongType, StringType
    >>> print(KeyColumns(field_ids=(1, 2), names=("id1", "id2"), types=(StringType(), LongType())))
    (id1, id2)
    """

    field_ids: tuple[int, ...]
    names: tuple[str, ...]
    """The names in the schema. They are displayed, but never used for matching (DA-6)."""
    types: tuple[PrimitiveType, ...]

    def __post_init__(self) -> None:
        if not self.field_ids:
            raise InvalidKeyError("a key needs at least one column.")
        if len(set(self.field_ids)) != len(self.field_ids):
            raise InvalidKeyError(f"key ({', '.join(self.names)}) contains a column twice.")
        for key_type in self.types:
            family_of(key_type)

    def __len__(self) -> int:
        return len(self.field_ids)

    def __str__(self) -> str:
        return f"({', '.join(self.names)})"

    @classmethod
    def of(cls, schema: Schema, field_ids: Sequence[int]) -> KeyColumns:
        """The columns with these field ids, in this order. Raises InvalidKeyError for an unknown id, a nested column,
        or a type without an order."""
        names, types = [], []
        for field_id in field_ids:
            name = schema.find_column_name(field_id)
            if name is None:
                raise InvalidKeyError(f"field id {field_id} of the key is not a column of schema {schema.schema_id}.")
            key_type = schema.find_type(field_id)
            if not isinstance(key_type, PrimitiveType):
                raise InvalidKeyError(f"column {name!r} of type {key_type} cannot be part of a key: it is nested.")
            names.append(name)
            types.append(key_type)
        return cls(tuple(field_ids), tuple(names), tuple(types))


def leading_columns(key: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """RD-5: the names in key order. They have to be the first columns of the key, each once. Otherwise raises
    InvalidKeyError or UnknownColumnError.

    >>> leading_columns(("id1", "id2", "num_cal"), ["id2", "id1"])
    ('id1', 'id2')
    """
    if isinstance(names, str):
        raise InvalidArgumentError(f"prefix must be a list of columns: prefix=[{names!r}].")
    for name in names:
        if name not in key:
            raise UnknownColumnError(name, key, where=f"a prefix of the key ({', '.join(key)})")
    lead = tuple(key[: len(names)])
    if not names or set(lead) != set(names) or len(set(names)) != len(names):
        raise InvalidKeyError(
            f"prefix ({', '.join(names)}) is not a leading part of the key ({', '.join(key)}). Pass its first "
            f"columns, such as ({', '.join(key[: max(len(names), 1)])})."
        )
    return lead
