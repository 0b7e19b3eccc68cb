"""Takes the identifier out of snapshot summaries and table properties (MT-117)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table.snapshots import Summary

from tableformat.errors import UnsupportedFeatureError
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.keys.key_columns import KeyColumns
from tableformat.maintenance.apply_retention import APPLIED
from tableformat.maintenance.conversion.conversion_record import CONVERTED_DELETES_UNTIL, CONVERTED_FILES_UNTIL
from tableformat.maintenance.erasure.data_files import ErasureContext
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.operations.ranges.later_deletes import DELETE_FILTERS
from tableformat.properties import RANGE_PARTITIONS, RETIRED_PREFIX
from tableformat.range_partitions.cuts import Cut, cut_from_json
from tableformat.range_partitions.past import key_of_then
from tableformat.range_partitions.summary import COVERAGE_BEFORE, COVERAGE_DROPPED

Document = dict[str, Any]

_COMPARE_PATHS: Final = (CONVERTED_DELETES_UNTIL, CONVERTED_FILES_UNTIL)
"""Entries that depend on the order of paths (MT-14). A conversion without them repeats work."""
_OWN_PREFIX: Final = "tableformat."
_CAN_BE_LEFT_OUT: Final = (APPLIED, *_COMPARE_PATHS)
"""Entries of our own without which a job repeats work. Others, such as the tag of a retired range, are needed: they
stay, and the certificate lists them."""
_COUNTS: Final = ("added-", "removed-", "deleted-", "total-", "changed-partition-count", "manifests-", "entries-")


def erased_summary(
    summary: Summary, context: ErasureContext, *, forgets_paths: bool
) -> tuple[dict[str, str], set[str]]:
    """MT-117: the entries of a summary that do not name the scope, and the names of the entries that were left out or
    changed. With `forgets_paths` data files have new names, so records of an order of paths are left out too."""
    kept: dict[str, str] = {}
    changed: set[str] = set()
    for name, text in summary.additional_properties.items():
        if forgets_paths and name in _COMPARE_PATHS:
            continue
        if name.startswith(_COUNTS) or not (context.scope.in_text(name, name) or context.scope.in_text(text, name)):
            kept[name] = text
            continue
        new = None if context.scope.in_text(name, name) else _new_entry(name, text, context)
        if new is not None:
            kept[name] = new
        if new != text:
            changed.add(name)
    return kept, changed


def _new_entry(name: str, text: str, context: ErasureContext) -> str | None:
    """The text of a summary entry without the scope; None if the entry is left out."""
    if name == DELETE_FILTERS:
        return json.dumps(None)  # RP-13: the condition is not known (any more), so restoring asks for a decision.
    if name == COVERAGE_BEFORE:
        return ranges_without(text, context, where=f"the summary entry {name} of a snapshot")
    if name == COVERAGE_DROPPED:
        return _dropped_without(text, context)
    is_kept = name.startswith(_OWN_PREFIX) and name not in _CAN_BE_LEFT_OUT
    return text if is_kept else None


def _dropped_without(text: str, context: ErasureContext) -> str | None:
    """RP-25: without the entry the feed returns the rows of the drop."""
    document = json.loads(text)
    key = _key(document, context)
    return None if any(any(_named_ends(each, key, context.scope)) for each in document["ranges"]) else text


def erased_properties(properties: Mapping[str, str], context: ErasureContext) -> tuple[dict[str, str], set[str]]:
    """MT-117: the table properties with range partitions that do not name the scope, and the names of the changed ones.

    Raises UnsupportedFeatureError if a range that has other rows too ends at a value of the scope.
    """
    kept: dict[str, str] = {}
    changed: set[str] = set()
    for name, text in properties.items():
        new: str | None = text
        if name == RANGE_PARTITIONS:
            new = ranges_without(text, context, where=f"the table property {name}")
        elif name.startswith(RETIRED_PREFIX):
            new = _retired_without(text, context, name)
        if new is not None:
            kept[name] = new
        if new != text:
            changed.add(name)
    return kept, changed


def ranges_without(text: str, context: ErasureContext, *, where: str) -> str:
    """The range partitions without those of the scope alone, and without borders inside of others that name it."""
    if not text:
        return text
    document = json.loads(text)
    key = _key(document, context)
    changed = dict(document)
    for name in ("bounds", "protect"):
        if name in document:
            changed[name] = _ranges_without(document[name], key, context.scope, where)
    if "splits" in document:
        changed["splits"] = [each for each in document["splits"] if not _names(each, key, context.scope)]
        if not changed["splits"]:
            del changed["splits"]
    if "limits" in document and any(_named_ends(document["limits"], key, context.scope)):
        raise _kept_border(where)
    return text if changed == document else json.dumps(changed, separators=(",", ":"), ensure_ascii=False)


def _retired_without(text: str, context: ErasureContext, name: str) -> str | None:
    """None if nothing is left of the retired ranges. The tag stays, with the rows of its snapshot."""
    try:
        document = json.loads(text)
        key = _key(document, context)
        ranges = _ranges_without(document["ranges"], key, context.scope, f"the table property {name}")
    except (KeyError, TypeError, ValueError):
        return text  # A property of another program, which does not describe a range.
    if ranges == document["ranges"]:
        return text
    return json.dumps({**document, "ranges": ranges}, separators=(",", ":")) if ranges else None


def _ranges_without(ranges: Iterable[Any], key: KeyColumns, scope: ErasureScope, where: str) -> list[Any]:
    left = []
    for each in ranges:
        named = _named_ends(each, key, scope)
        if not any(named):
            left.append(each)
        elif not (all(named) and _is_one_value(each, key, scope)):
            raise _kept_border(where)
    return left


def _named_ends(each: Any, key: KeyColumns, scope: ErasureScope) -> tuple[bool, ...]:
    return tuple(_names(cut, key, scope) for cut in each if cut is not None)


def _is_one_value(each: Any, key: KeyColumns, scope: ErasureScope) -> bool:
    """Whether both ends have the same values in the columns of the scope, which are the first ones: then every row
    between them is in the scope."""
    depth = len(scope.field_ids)
    if set(key.field_ids[:depth]) != scope.field_ids:
        return False
    ends = [_cut(cut, key).values[:depth] for cut in each if cut is not None]
    return len(ends) == len(each) and ends[0] == ends[1]


def _names(cut: Any, key: KeyColumns, scope: ErasureScope) -> bool:
    if cut is None:
        return False
    values = _cut(cut, key).values
    columns = {
        field_id: array_of_internal_values([value], kind) if value is not None else pa.nulls(1, arrow_type_of(kind))
        for field_id, kind, value in zip(key.field_ids, key.types, values, strict=False)
    }
    mask = scope.matching(columns, 1)
    return mask is not None and bool(mask[0].as_py())


def _cut(cut: Any, key: KeyColumns) -> Cut:
    return cut_from_json(key, cut, is_upper=False)


def _key(document: Document, context: ErasureContext) -> KeyColumns:
    schemas = (context.metadata.schema(), *context.metadata.schemas)
    then = next(
        (each for each in schemas if all(each.find_column_name(one) is not None for one in document["field-ids"])),
        context.metadata.schema(),
    )
    return key_of_then(document["field-ids"], context.metadata.schema(), then)


def _kept_border(where: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{where} has a range of other rows that ends at a value of the scope. Nothing was changed. Move the border "
        "with table.range_partitions.alter(...), expire the snapshots that have the former ranges, and erase again."
    )
