"""The scope of an erasure: the rows to erase, and the texts that name them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final
from urllib.parse import quote_plus
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FixedType,
    FloatType,
    PrimitiveType,
    StringType,
    UUIDType,
)

from tableformat.arguments import shown
from tableformat.cached_property import cached_property
from tableformat.errors import InvalidArgumentError, InvalidKeyError
from tableformat.filters.bound_filter import (
    FALSE,
    TRUE,
    AllOf,
    Always,
    AnyOf,
    BoundFilter,
    Comparison,
    FilterColumns,
    Operator,
    all_of,
    any_of,
    bind_filter,
    comparisons,
    to_expression,
)
from tableformat.filters.file_statistics import column_statistics
from tableformat.filters.partition_pruning import PartitionPruning
from tableformat.filters.predicate import Where, parse_where
from tableformat.filters.pruning import ColumnStatistics, decide, residual
from tableformat.filters.row_filter import matching_rows
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.key_columns import KeyColumns, leading_columns
from tableformat.metadata.content_file import ContentFile
from tableformat.metadata.partition_text import human_text
from tableformat.range_partitions.cuts import value_from_json, value_to_json
from tableformat.write.rows.rows import as_reader

Document = dict[str, Any]

_IDENTIFIERS_MAX: Final = 10_000
_WITH_VALUES: Final = (Operator.EQUAL, Operator.IN)
_WORD: Final = r"(?<![0-9A-Za-z_]){}(?![0-9A-Za-z_])"
"""A short value is found as a word: 3 is not in 33."""
_SETTINGS: Final = (
    *("write.", "read.", "commit.", "history.", "gc.", "schema.name-mapping.", "format-version", "current-schema"),
    *("tableformat.upkeep", "tableformat.erase", "tableformat.write.", "tableformat.history.", "tableformat.key-"),
    *("engine-", "app-id", "iceberg-version", "operation", "type", "codec", "added-", "removed-", "deleted-", "total-"),
)
"""Beginnings of the names of entries whose values are settings, counts and versions."""
_LONG: Final = 8
"""A text of this length is found inside of words too."""


@dataclass(frozen=True)
class ErasureScope:
    """The rows of one table to erase, as a filter on its columns.

    A row, a key of a delete or a cut *names* the scope if it has all columns of the filter and matches it.
    """

    schema: Schema
    """The current schema of the table."""
    bound: BoundFilter

    @cached_property
    def expression(self) -> BooleanExpression:
        return to_expression(self.bound)

    @cached_property
    def field_ids(self) -> frozenset[int]:
        """The columns of the filter."""
        return frozenset(leaf.field.field_id for leaf in comparisons(self.bound))

    @cached_property
    def single(self) -> Comparison | None:
        """A comparison of the only column of the filter; None for several columns."""
        return next(comparisons(self.bound)) if len(self.field_ids) == 1 else None

    # Rows and values --------------------------------------------------------------------------------------------------

    def may_hold(self, file: ContentFile) -> bool:
        """Whether the bounds of the file allow a row of the scope."""
        found = residual(
            self.bound,
            lambda leaf: decide(leaf, column_statistics(file, leaf.field.field_id, leaf.field.field_type)),
        )
        return found is not FALSE

    def in_partition(self, spec: PartitionSpec, partition: tuple[Any, ...]) -> bool | None:
        """True if the values of the partition alone state that every row is in the scope, False if no row is. None if
        they do not decide."""
        pruning = self._prunings.get(spec.spec_id)
        if pruning is None:
            pruning = self._prunings[spec.spec_id] = PartitionPruning(self.bound, spec, self.schema)
        found = pruning.residual_in(partition)
        return found.answer if isinstance(found, Always) else None

    @cached_property
    def _prunings(self) -> dict[int, PartitionPruning]:
        return {}

    def names_bound(self, value: Any) -> bool:
        """Whether a single value, such as a bound, is one of the scope. False for a scope of several columns, whose
        bounds come from different rows."""
        if self.single is None or value is None:
            return False
        internal = value.bytes if isinstance(value, UUID) else value
        known = ColumnStatistics(may_be_null=False, may_be_nan=False, lower=internal, upper=internal)
        return residual(self.bound, lambda leaf: decide(leaf, known)) is TRUE

    def matching(self, columns: Mapping[int, pa.Array], row_count: int) -> pa.BooleanArray | None:
        """A flag for each row with these top-level columns, by field id. None if a column of the filter is missing."""
        if not self.field_ids <= columns.keys():
            return None
        names = {leaf.field.field_id: leaf.path for leaf in comparisons(self.bound)}
        if any(len(path) > 1 for path in names.values()):
            return None
        rows = pa.table({path[0]: columns[field_id] for field_id, path in names.items()})
        mask = matching_rows(self.bound, rows)
        if isinstance(mask, bool):
            return pa.repeat(mask, row_count)
        flat = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
        return flat.fill_null(False)

    # Texts ------------------------------------------------------------------------------------------------------------

    @cached_property
    def identifiers(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The identifiers of the scope: for each one the values that it consists of, each in all forms of its text.
        Empty if the scope has no values, for example `ts < ...`."""
        found = islice(_identifiers(self.bound), _IDENTIFIERS_MAX + 1)
        texts = tuple(tuple(_forms(value, kind) for value, kind in each) for each in found)
        return texts if len(texts) <= _IDENTIFIERS_MAX else ()

    @cached_property
    def _patterns(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        return tuple(tuple(re.compile("|".join(map(_pattern, forms))) for forms in each) for each in self.identifiers)

    def in_text(self, text: str, name: str = "") -> bool:
        """Whether the text has all values of an identifier, a short one as a word. `name` is the name of the entry with
        the text: settings have words such as `none`, so only long values are looked for in them."""
        patterns = self._long_patterns if name.startswith(_SETTINGS) else self._patterns
        return any(all(pattern.search(text) for pattern in each) for each in patterns)

    @cached_property
    def _long_patterns(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        pairs = zip(self.identifiers, self._patterns, strict=True)
        return tuple(found for each, found in pairs if all(any(len(form) >= _LONG for form in forms) for forms in each))

    def in_path(self, path: str) -> bool:
        """Whether the path of a file has all values of an identifier. A short value counts as the value of a partition
        only: writers number their files."""
        return any(all(pattern.search(path) for pattern in each) for each in self._path_patterns)

    @cached_property
    def _path_patterns(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        return tuple(
            tuple(
                re.compile(
                    "|".join(re.escape(form) if len(form) >= _LONG else f"={re.escape(form)}(?=/)" for form in forms)
                )
                for forms in each
            )
            for each in self.identifiers
        )

    @property
    def has_long_texts(self) -> bool:
        """Whether every identifier is long enough to be found in any bytes."""
        return all(any(len(form) >= _LONG for form in forms) for each in self.identifiers for forms in each)

    # JSON -------------------------------------------------------------------------------------------------------------

    def to_json(self) -> Document:
        """The filter with field ids, so that it survives a renamed column."""
        return _to_json(self.bound)

    @classmethod
    def from_json(cls, document: Document, schema: Schema) -> ErasureScope:
        """Raises InvalidArgumentError for a document of another form, and for a column that was dropped."""
        return cls(schema, _from_json(document, FilterColumns(schema), schema))


def scope_of(schema: Schema, key_field_ids: Sequence[int], *, prefix: Any, where: Where | None) -> ErasureScope:
    """The scope of the caller's arguments: a prefix of the key, several prefixes, or a filter.

    Raises InvalidArgumentError without exactly one of them, for a filter that matches every row and for one that
    matches no row.
    """
    if (prefix is None) == (where is None):
        raise InvalidArgumentError("erase takes a prefix of the key or where=, one of them.")
    if prefix is not None:
        where = _prefix_filter(schema, key_field_ids, prefix)
    bound = bind_filter(parse_where(where, schema), schema)
    if isinstance(bound, Always):
        raise InvalidArgumentError(
            f"the filter matches {'every row' if bound.answer else 'no row'}. Nothing was changed. Name the rows to "
            "erase; drop_table(purge=True) removes a whole table."
        )
    return ErasureScope(schema, bound)


def _prefix_filter(schema: Schema, key_field_ids: Sequence[int], prefix: Any) -> pc.Expression:
    key = tuple(name for field_id in key_field_ids if (name := schema.find_column_name(field_id)) is not None)
    if not key:
        raise InvalidKeyError("the table has no key, so there is no prefix of it. Give where= instead.")
    table = _prefixes(schema, key, key_field_ids, prefix)
    if table.num_rows == 0:
        raise InvalidArgumentError("prefix has no row, so there is nothing to erase.")
    if table.num_columns == 1 and not table.column(0).null_count:
        return pc.field(table.column_names[0]).isin(table.column(0).combine_chunks())
    return _any(_all_equal(table.column_names, values) for values in zip(*table.columns, strict=True))


def _prefixes(schema: Schema, key: tuple[str, ...], key_field_ids: Sequence[int], prefix: Any) -> pa.Table:
    if isinstance(prefix, str | bytes):
        raise InvalidArgumentError(f"prefix names its columns: {{{key[0]!r}: {prefix!r}}}.")
    given = [prefix] if isinstance(prefix, Mapping) else prefix
    if not (isinstance(given, list | tuple) and all(isinstance(each, Mapping) for each in given)):
        read = as_reader(prefix, what="prefix").read_all()
        names = leading_columns(key, read.column_names)
        given = read.select(names).to_pylist()
    if not given:
        return pa.table({})
    names = tuple(given[0])
    if not all(isinstance(name, str) for name in names) or any(set(each) != set(names) for each in given):
        raise InvalidArgumentError(f"every prefix names the same columns by text, not {shown(given)}.")
    names = leading_columns(key, names)
    on = KeyColumns.of(schema, key_field_ids[: len(names)])
    return pa.table(
        {
            name: array_of_values([each[name] for each in given], key_type, name=name)
            for name, key_type in zip(names, on.types, strict=True)
        }
    )


def _all_equal(names: Sequence[str], values: Sequence[pa.Scalar]) -> pc.Expression:
    parts = [
        pc.field(name) == value if value.is_valid else pc.field(name).is_null()
        for name, value in zip(names, values, strict=True)
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def _any(parts: Iterator[pc.Expression]) -> pc.Expression:
    whole = next(parts)
    for part in parts:
        whole = whole | part
    return whole


def _identifiers(bound: BoundFilter) -> Iterator[tuple[tuple[Any, PrimitiveType], ...]]:
    """The combinations of values that the filter compares with by equality."""
    match bound:
        case Comparison() if isinstance(bound.field.field_type, BooleanType):
            return  # True and false identify nobody.
        case Comparison() if bound.operator in _WITH_VALUES:
            assert isinstance(bound.field.field_type, PrimitiveType), "only primitive columns are compared"
            for value in bound.values:
                yield ((value, bound.field.field_type),)
        case AnyOf():
            for term in bound.terms:
                yield from _identifiers(term)
        case AllOf():
            parts = [found for term in bound.terms if (found := list(islice(_identifiers(term), _IDENTIFIERS_MAX)))]
            if parts:
                for combination in product(*parts):
                    yield tuple(value for part in combination for value in part)


def _forms(value: Any, kind: PrimitiveType) -> tuple[str, ...]:
    """The texts in which metadata may have the value: plain, in JSON, in SQL, in a path."""
    if isinstance(kind, BinaryType | FixedType):
        data = bytes(value)
        return (data.hex(), human_text(IdentityTransform(), kind, data))
    if isinstance(kind, UUIDType):
        return (str(UUID(bytes=bytes(value))), bytes(value).hex())
    texts = [str(value)] if isinstance(kind, StringType) else [human_text(IdentityTransform(), kind, value)]
    if not isinstance(kind, StringType):
        texts.append(str(value_to_json(value, kind)))
    forms = [
        form
        for text in texts
        for form in (
            text,
            json.dumps(text)[1:-1],
            text.replace("'", "''"),
            quote_plus(text, safe=""),
            ascii(text)[1:-1],
        )
    ]
    return tuple(dict.fromkeys(form for form in forms if form))


def _pattern(form: str) -> str:
    return re.escape(form) if len(form) >= _LONG else _WORD.format(re.escape(form))


def _to_json(bound: BoundFilter) -> Document:
    if isinstance(bound, Comparison):
        kind = bound.field.field_type
        assert isinstance(kind, PrimitiveType) or not bound.values, "values are primitive"
        values = [value_to_json(value, kind) for value in bound.values] if isinstance(kind, PrimitiveType) else []
        operator = bound.operator.value
        return {"column": bound.name, "field-id": bound.field.field_id, "operator": operator, "values": values}
    assert isinstance(bound, AllOf | AnyOf), "a scope is never every row"
    return {"and" if isinstance(bound, AllOf) else "or": [_to_json(term) for term in bound.terms]}


def _from_json(document: Document, columns: FilterColumns, schema: Schema) -> BoundFilter:
    try:
        for word, combine in (("and", all_of), ("or", any_of)):
            if word in document:
                return combine([_from_json(term, columns, schema) for term in document[word]])
        name = schema.find_column_name(document["field-id"])
        if name is None:
            raise InvalidArgumentError(
                f"the certificate is about column {document['column']!r}, which the table does not have (any more). "
                "Verify it in a copy of the table that has the column."
            )
        leaf = columns.leaf(name, Operator(document["operator"]))
        kind = leaf.field.field_type
        assert isinstance(kind, PrimitiveType) or not document["values"], "values are primitive"
        values = tuple(_value(value, kind) for value in document["values"]) if isinstance(kind, PrimitiveType) else ()
        return Comparison(leaf.field, leaf.path, leaf.operator, values, leaf.is_nullable)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the scope {shown(document)} cannot be read: {error!r}.") from error


def _value(given: Any, kind: PrimitiveType) -> Any:
    return float(given) if isinstance(kind, FloatType | DoubleType) else value_from_json(given, kind)


def in_leaves(scope: ErasureScope, document: Any, skipped: Collection[str] = ()) -> Iterator[str]:
    """The keys of a JSON document, joined by dots, whose key or text names the scope. `skipped` are keys that are left
    out."""
    yield from _in_leaves(scope, document, "", skipped)


def _in_leaves(scope: ErasureScope, value: Any, path: str, skipped: Collection[str], key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name in skipped:
                continue
            inner = f"{path}.{name}" if path else str(name)
            if scope.in_text(str(name), str(name)):
                yield inner
            else:
                yield from _in_leaves(scope, each, inner, skipped, str(name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _in_leaves(scope, each, f"{path}[{number}]", skipped, key)
    elif isinstance(value, str) and not value.isdecimal() and scope.in_text(value, key):
        yield path
