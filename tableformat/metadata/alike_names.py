"""Column names that differ only in case. Iceberg allows them in one table; DuckDB does not distinguish them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tableformat.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa


def folded(name: str) -> str:
    """The name as DuckDB compares it: only the letters A to Z are folded."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def are_alike(names: Iterable[str]) -> bool:
    """Whether two of the names differ only in case."""
    given = list(names)
    return len({folded(name) for name in given}) < len(given)


def has_alike_fields(of: pa.DataType) -> bool:
    """Whether a struct of the type has two fields whose names differ only in case."""
    return any(are_alike(names) for names in _struct_names(of))


def refuse_alike_columns(schema: pa.Schema, *, what: str) -> None:
    """Raise UnsupportedFeatureError if DuckDB could read another column, or another field of a struct, than the query
    names. `what` is the object that DuckDB would read."""
    pair = _alike_pair(schema.names)
    if pair is not None:
        told = f"columns {pair[0]!r} and {pair[1]!r}, whose names differ"
    else:
        nested = next((field.name for field in schema if has_alike_fields(field.type)), None)
        if nested is None:
            return
        told = f"fields in column {nested!r} whose names differ"
    raise UnsupportedFeatureError(
        f"DuckDB does not distinguish upper and lower case, and {what} has {told} only in case. Nothing was read or "
        "changed. Rename one of them with table.update_schema(). Or use table.scan(where=..., columns=...) and "
        "table.delete(where=...), which distinguish case."
    )


def _alike_pair(names: Iterable[str]) -> tuple[str, str] | None:
    first: dict[str, str] = {}
    for name in names:
        earlier = first.setdefault(folded(name), name)
        if earlier is not name:
            return earlier, name
    return None


def _struct_names(of: pa.DataType) -> Iterator[list[str]]:
    """The field names of each struct in the type."""
    import pyarrow as pa

    if isinstance(of, pa.BaseExtensionType):
        of = of.storage_type
    if pa.types.is_struct(of):
        yield [of.field(number).name for number in range(of.num_fields)]
    if pa.types.is_nested(of):
        for number in range(of.num_fields):
            yield from _struct_names(of.field(number).type)
