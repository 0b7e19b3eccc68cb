"""`delete_prefix`: delete all rows whose key starts with given values, without reading rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from numbers import Number
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, NestedField

from tableformat.arguments import shown
from tableformat.deletes.spans.spans import spans_of_prefixes
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.key_columns import KeyColumns, leading_columns
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.covered_rows import delete_covered
from tableformat.operations.staging.blind_deletes import refuse_forbidden
from tableformat.operations.staging.draft import Draft
from tableformat.properties import BLIND_DELETES, BLIND_OFF, ORDER_COLUMN, PREFIX_ENCODING, blind_deletes
from tableformat.write.rows.rows import as_reader

MODES: Final = ("auto", "range", "equality", "scan")


def delete_prefix(draft: Draft, *, prefix: Any, mode: str = "auto") -> None:
    """Stage a range delete of the prefixes, or an equality delete if the mode or the table property requests it."""
    one_of(mode, MODES, option="mode")
    if mode in ("range", "equality"):
        refuse_forbidden(mode, draft.blind_deletes, table=draft.name)
    prefixes = prefix_table(draft, prefix)
    draft.begin_verb()
    if prefixes.num_rows == 0:
        return
    if mode == "scan":
        delete_covered(draft, spans_of_prefixes(KeyColumns.of(draft.schema, draft.key_field_ids), prefixes))
        return
    stage_prefixes(draft, prefixes, encoding=None if mode == "auto" else mode)


def stage_prefixes(
    draft: Draft, prefixes: pa.Table, *, encoding: str | None = None, named_in: Schema | None = None
) -> None:
    """Stage the delete of prefixes whose columns lead the key. `encoding` defaults to `write.delete.prefix-encoding`.
    CP-37: `named_in` is the schema of the column names, if it is older than the schema of the draft."""
    if named_in is not None:
        prefixes = prefixes.rename_columns(names_by_now(prefixes.column_names, named_in, draft.schema))
    if (encoding or draft.prefix_encoding) == "equality":
        check_others_read_it(draft, prefixes)
        draft.add_keys(prefixes)
    else:
        draft.add_spans(spans_of_prefixes(KeyColumns.of(draft.schema, draft.key_field_ids), prefixes))


def stage_ordered_deletes(draft: Draft, keys: pa.Table, order: NestedField) -> None:
    """CP-71: stage the delete of keys or prefixes together with their values of the order column, in the types of the
    table.

    They are written as equality deletes, because these can store the value. Raises InvalidArgumentError if the table's
    owner forbids equality deletes: later writes could not recognise stale rows.
    """
    if not keys.num_rows:
        return
    if blind_deletes(draft.view.metadata.properties) == BLIND_OFF:
        raise InvalidArgumentError(
            f"{draft.name} has an order column ({ORDER_COLUMN}) and {BLIND_DELETES}={BLIND_OFF!r}: a delete could "
            f"not store its value of {order.name!r}, so older rows would reappear. Nothing was written. Allow it "
            f"with set_properties({{{BLIND_DELETES!r}: 'equality'}})."
        )
    check_others_read_it(draft, keys.drop_columns([order.name]))
    draft.order.deletes.append(keys)
    draft.add_keys(keys, beside=order.name)


def check_others_read_it(draft: Draft, prefixes: pa.Table) -> None:
    """Raise UnsupportedFeatureError for prefixes that Iceberg's Java library would not delete completely. Prefixes are
    written as equality deletes for engines without range deletes. That library keeps only one value of a `fixed` column
    for a whole delete file, so it would apply only one of several prefixes."""
    for name in prefixes.column_names:
        column_type = draft.schema.find_field(name).field_type
        if isinstance(column_type, FixedType) and pc.count_distinct(prefixes[name], mode="all").as_py() > 1:
            raise UnsupportedFeatureError(
                f"prefixes with several values of column {name!r}, a {column_type}, cannot be written as equality "
                "deletes: Iceberg's Java library would apply only one of them. Pass one prefix at a time. Or set the "
                f"table property {PREFIX_ENCODING} to 'range', and convert deletes before others read the table."
            )


def prefix_table(draft: Draft, prefix: Any) -> pa.Table:
    """The prefixes as a table whose columns are the leading key columns in key order."""
    key = draft.key_names
    if isinstance(prefix, Mapping):
        if not all(isinstance(name, str) for name in prefix):
            raise InvalidArgumentError(f"prefix must be keyed by column names, not {shown(list(prefix))}.")
        names = leading_columns(key, tuple(prefix))
        on = KeyColumns.of(draft.schema, draft.key_field_ids[: len(names)])
        columns = {
            name: array_of_values([prefix[name]], key_type, name=name)
            for name, key_type in zip(names, on.types, strict=True)
        }
        return pa.table(columns)
    if isinstance(prefix, str | bytes):
        raise InvalidArgumentError(f"prefix must name its columns: {{{key[0]!r}: {prefix!r}}}.")
    if isinstance(prefix, list | tuple) and any(isinstance(each, str | bytes | Number | date) for each in prefix):
        named = ", ".join(f"{name!r}: {value!r}" for name, value in zip(key, prefix, strict=False))
        raise InvalidArgumentError(f"prefix must name its columns: {{{named}}}.")
    table = as_reader(prefix, what="prefix").read_all()
    return table.select(leading_columns(key, table.column_names))


def names_by_now(names: Sequence[str], written: Schema, now: Schema) -> list[str]:
    """CP-37: the current names of columns, which are identified by their field ids. Raises InvalidArgumentError for a
    column that was dropped."""
    found = [now.find_column_name(written.find_field(name).field_id) for name in names]
    for name, current in zip(names, found, strict=True):
        if current is None:
            raise InvalidArgumentError(
                f"column {name!r}, which identifies the rows that the staged rows replace, was dropped after they "
                "were written. Nothing was changed. Stage the rows again."
            )
    return [name for name in found if name is not None]
