"""Translates a pyarrow filter, which engines push into a dataset, to a bound filter for pruning.

pyarrow has no way to inspect an Expression. Therefore its serialized form is read: an Arrow IPC file whose schema
metadata lists the tree in prefix order and whose columns hold the literals and options. Unknown parts become "may be
true", so the expression implies the translation; the result also reports whether both are equal. pyarrow compares NaN
as IEEE 754 does. This is one of four front ends of the bound filter (`predicate.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyarrow import ipc
from pyiceberg.schema import Schema

from tableformat.filters.bound_filter import (
    FALSE,
    NEGATION,
    TRUE,
    BoundFilter,
    Comparison,
    FilterColumns,
    Operator,
    all_of,
    always,
    any_of,
    compare,
    compare_with_set,
    is_nan_value,
)
from tableformat.filters.literals import Fitted

_LINE: Final = re.compile(r"(call|field_ref|nested_field_ref|literal|options|end): '(.*)'")
_UNREADABLE_NAME: Final = re.compile(r"['\n\r]")
_COMPARISONS: Final = {
    "equal": Operator.EQUAL,
    "not_equal": Operator.NOT_EQUAL,
    "less": Operator.LESS,
    "less_equal": Operator.LESS_OR_EQUAL,
    "greater": Operator.GREATER,
    "greater_equal": Operator.GREATER_OR_EQUAL,
}
_MIRRORED: Final = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """The part of a pyarrow filter that metadata can evaluate."""

    bound: BoundFilter
    """True for every row for which the expression is true."""
    is_exact: bool
    """Whether it is false for all other rows."""
    columns: tuple[str, ...] | None
    """Top-level columns that the expression reads; None if they are unknown."""


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: tuple[_Node, ...]
    options: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Field:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Literal:
    scalar: pa.Scalar


_Node = _Call | _Field | _Literal
UNTRANSLATED: Final = Translation(TRUE, is_exact=False, columns=None)


def translate(expression: pc.Expression, schema: Schema, arrow_schema: pa.Schema) -> Translation:
    """The filter over the columns of `schema`, whose Arrow form is `arrow_schema`."""
    root = _parse(expression, arrow_schema)
    if root is None:
        return UNTRANSLATED
    translator = _Translator(schema, arrow_schema)
    bound = translator.condition(root, negated=False)
    return Translation(bound, translator.is_exact, tuple(sorted({field.path[0] for field in _fields(root)})))


class _Translator:
    """One walk over one expression. `is_exact` becomes false if a part had to be left out."""

    def __init__(self, schema: Schema, arrow_schema: pa.Schema) -> None:
        self._columns = FilterColumns(schema)
        self._arrow_schema = arrow_schema
        self.is_exact = True
        self._handlers: dict[str, Callable[[_Call, bool], BoundFilter | None]] = {
            "and_kleene": self._and,
            "or_kleene": self._or,
            "invert": lambda call, negated: self.condition(call.arguments[0], negated=not negated),
            "if_else": self._if_else,
            "is_null": self._is_null,
            "is_valid": self._is_valid,
            "is_nan": self._is_nan,
            "is_in": self._is_in,
            "starts_with": self._starts_with,
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def condition(self, node: _Node, *, negated: bool) -> BoundFilter:
        found: BoundFilter | None = None
        if isinstance(node, _Call):
            handler = self._handlers.get(node.name)
            found = None if handler is None else handler(node, negated)
        elif isinstance(node, _Literal):
            value = node.scalar.as_py()
            found = FALSE if value is None else always(bool(value) != negated)
        else:
            leaf = self._leaf(node, Operator.EQUAL)
            if leaf is not None:
                found = compare(leaf, Fitted(not negated, exact=True))
        if found is None:
            self.is_exact = False
            return TRUE
        return found

    def _and(self, call: _Call, negated: bool) -> BoundFilter:
        terms = [self.condition(term, negated=negated) for term in call.arguments]
        return any_of(terms) if negated else all_of(terms)

    def _or(self, call: _Call, negated: bool) -> BoundFilter:
        terms = [self.condition(term, negated=negated) for term in call.arguments]
        return all_of(terms) if negated else any_of(terms)

    def _if_else(self, call: _Call, negated: bool) -> BoundFilter | None:
        """`if_else(condition, then, null)`: DuckDB writes this so that a null is not in a set."""
        condition, then, otherwise = call.arguments
        if not isinstance(otherwise, _Literal) or otherwise.scalar.is_valid:
            return None
        return all_of([self.condition(condition, negated=False), self.condition(then, negated=negated)])

    def _is_null(self, call: _Call, negated: bool) -> BoundFilter | None:
        leaf = self._leaf(call.arguments[0], Operator.NOT_NULL if negated else Operator.IS_NULL)
        if leaf is None or (call.options or {}).get("nan_is_null"):
            return None
        return leaf if leaf.is_nullable else always(negated)

    def _is_valid(self, call: _Call, negated: bool) -> BoundFilter | None:
        leaf = self._leaf(call.arguments[0], Operator.IS_NULL if negated else Operator.NOT_NULL)
        if leaf is None:
            return None
        return leaf if leaf.is_nullable else always(not negated)

    def _is_nan(self, call: _Call, negated: bool) -> BoundFilter | None:
        leaf = self._leaf(call.arguments[0], Operator.NOT_NAN if negated else Operator.IS_NAN)
        return leaf if leaf is not None and leaf.is_float else None

    def _is_in(self, call: _Call, negated: bool) -> BoundFilter | None:
        """Null is not in a set without null, so it passes the negation."""
        leaf = self._leaf(call.arguments[0], Operator.NOT_IN if negated else Operator.IN)
        options = call.options or {}
        values = options.get("value_set")
        if leaf is None or values is None or options.get("null_matching_behavior") != 0:
            return None
        if negated and leaf.is_float:
            return None
        fitted = self._fit(values, leaf)
        if fitted is None:
            return None
        self.is_exact = self.is_exact and not leaf.is_float
        found = compare_with_set(leaf, fitted)
        return any_of([found, self._null_of(leaf)]) if negated else found

    def _starts_with(self, call: _Call, negated: bool) -> BoundFilter | None:
        leaf = self._leaf(call.arguments[0], Operator.NOT_STARTS_WITH if negated else Operator.STARTS_WITH)
        options = call.options or {}
        pattern = options.get("pattern")
        if leaf is None or pattern is None or options.get("ignore_case") or not pat.is_string(self._type_of(leaf)):
            return None
        return compare(leaf, Fitted(pattern.as_py(), exact=True))

    def _comparison(self, call: _Call, negated: bool) -> BoundFilter | None:
        left, right, name = *call.arguments, call.name
        if isinstance(left, _Literal):
            left, right, name = right, left, _MIRRORED.get(name, name)
        operator = _COMPARISONS[name]
        leaf = self._leaf(left, NEGATION[operator] if negated else operator)
        if leaf is None or not isinstance(right, _Literal):
            return None
        if not right.scalar.is_valid:
            return FALSE
        fitted = self._fit(pa.array([right.scalar.as_py()], right.scalar.type), leaf)
        if fitted is None or is_nan_value(fitted[0].floor):
            return None
        found = compare(leaf, fitted[0])
        if not leaf.is_float:
            return found
        # In pyarrow, NaN satisfies only "not equal", so it satisfies the negation of other comparisons. Here NaN is the
        # greatest number.
        if (name == "not_equal") == negated:
            return all_of([found, self._leaf_like(leaf, Operator.NOT_NAN)])
        return any_of([found, self._leaf_like(leaf, Operator.IS_NAN)])

    def _leaf(self, node: _Node, operator: Operator) -> Comparison | None:
        if not isinstance(node, _Field):
            return None
        name = ".".join(node.path)
        return self._columns.leaf(name, operator) if name in self._columns.names else None

    def _leaf_like(self, leaf: Comparison, operator: Operator) -> Comparison:
        return self._columns.leaf(leaf.name, operator)

    def _null_of(self, leaf: Comparison) -> BoundFilter:
        return self._leaf_like(leaf, Operator.IS_NULL) if leaf.is_nullable else FALSE

    def _type_of(self, leaf: Comparison) -> pa.DataType:
        found: pa.DataType = self._arrow_schema.field(leaf.path[0]).type
        for name in leaf.path[1:]:
            found = found.field(name).type
        return found

    def _fit(self, literals: pa.Array, leaf: Comparison) -> list[Fitted] | None:
        """The literals as internal values of the column's type; None if one is not exactly such a value."""
        wanted = self._type_of(leaf)
        if literals.null_count or pat.is_nested(wanted):
            return None
        # The internal form of a UUID is its bytes.
        wanted, literals = _storage_type(wanted), _storage(literals)
        try:
            values = literals.cast(wanted)
            is_same = values.cast(literals.type).equals(literals)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if not is_same:
            return None
        if pat.is_temporal(wanted):
            values = values.cast(pa.int32() if wanted.bit_width == 32 else pa.int64())
        return [Fitted(value, exact=True) for value in values.to_pylist()]


def _storage_type(data_type: pa.DataType) -> pa.DataType:
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _storage(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values.type, pa.BaseExtensionType) else values


def _parse(expression: pc.Expression, arrow_schema: pa.Schema) -> _Node | None:
    """The tree; None if it cannot be read safely."""
    if any(_UNREADABLE_NAME.search(name) for name in _names(arrow_schema)):
        return None
    try:
        (serialized,) = expression.__reduce__()[1]
    except pa.ArrowNotImplementedError:
        return None  # A column that is named by its place has no serialized form.
    with ipc.open_file(serialized) as file:
        batch = file.get_batch(0)
    text = batch.schema.to_string(show_field_metadata=False, truncate_metadata=False)
    _, _, listing = text.partition("-- schema metadata --\n")
    lines = [_LINE.fullmatch(line) for line in listing.splitlines()]
    if not lines or not all(lines):
        return None
    tokens = iter([(match.group(1), match.group(2)) for match in lines if match is not None])
    kind, value = next(tokens)
    return _node(kind, value, tokens, batch)


def _node(kind: str, value: str, tokens: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    if kind == "field_ref":
        return _Field((value,))
    if kind == "nested_field_ref":
        return _Field(tuple(next(tokens)[1] for _ in range(int(value))))
    if kind == "literal":
        return _Literal(batch.column(int(value))[0])
    assert kind == "call", f"{kind} in a serialized expression"
    arguments: list[_Node] = []
    options = None
    while (token := next(tokens))[0] != "end":
        if token[0] == "options":
            struct = batch.column(int(token[1]))[0]
            options = {name: struct[name] for name in struct}
        else:
            arguments.append(_node(*token, tokens, batch))
    return _Call(value, tuple(arguments), None if options is None else _plain(options))


def _plain(options: dict[str, pa.Scalar]) -> dict[str, Any]:
    """Options as Python values. Value sets and patterns keep their Arrow type."""
    plain: dict[str, Any] = {}
    for name, scalar in options.items():
        if name == "value_set":
            plain[name] = scalar.values if scalar.is_valid else None
        else:
            plain[name] = scalar if name == "pattern" else scalar.as_py()
    return plain


def _fields(node: _Node) -> Iterator[_Field]:
    if isinstance(node, _Field):
        yield node
    elif isinstance(node, _Call):
        for argument in node.arguments:
            yield from _fields(argument)


def _names(fields: Any) -> Iterator[str]:
    for field in fields:
        yield field.name
        if pat.is_struct(field.type):
            yield from _names(field.type)
