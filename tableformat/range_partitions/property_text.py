"""The table property `tableformat.range-partitions`: JSON by field ids, with a version (RP-1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnsupportedFeatureError
from tableformat.keys.key_columns import KeyColumns
from tableformat.parquet.metrics_modes import METRICS, check_metrics_columns, refuse_lost_bounds
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.cuts import Cut, Range, cut_from_json, cut_to_json, value_from_json, value_to_json
from tableformat.range_partitions.defined import DefinedPartitions, OnDemand, Window
from tableformat.range_partitions.definition import check_families
from tableformat.range_partitions.steps import Steps, parse_duration

VERSION: Final = 1
MAX_BYTES: Final = 65_536
_NAMES: Final = frozenset(
    {
        *("version", "field-ids", "bounds", "splits", "step", "origin", "time-zone", "on-demand", "limits"),
        *("max-new-per-commit", "default", "retain", "ahead", "keep-latest", "protect", "max-drops"),
    }
)


def to_property(defined: DefinedPartitions) -> str:
    """RP-1: the text of the property. Raises InvalidArgumentError above 64 KiB."""
    key, window = defined.key, defined.window
    value: dict[str, Any] = {
        "version": VERSION,
        "field-ids": list(key.field_ids),
        "bounds": [range_to_json(key, each) for each in defined.bounds],
    }
    if defined.splits:
        value["splits"] = [cut_to_json(key, cut) for cut in defined.splits]
    if defined.steps is not None:
        value["step"] = defined.steps.duration.text
        value["origin"] = value_to_json(defined.steps.origin, key.types[0])
        value["time-zone"] = defined.steps.zone
    if defined.on_demand is not None:
        value |= {"on-demand": True, "max-new-per-commit": defined.on_demand.max_new_per_commit}
        if defined.on_demand.limits is not None:
            value["limits"] = range_to_json(key, defined.on_demand.limits)
    if defined.has_default:
        value["default"] = True
    if window.retain is not None:
        value["retain"] = window.retain.text
    value |= {name: number for name, number in _numbers(window).items() if number}
    if window.protect:
        value["protect"] = [range_to_json(key, each) for each in window.protect]
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode())
    if size > MAX_BYTES:
        raise InvalidArgumentError(
            f"the range partitions need {size:,} bytes of metadata, which every reader loads; the limit is "
            f"{MAX_BYTES:,}. Use a step, which describes many partitions in one bound."
        )
    return text


def _numbers(window: Window) -> dict[str, int | None]:
    return {"ahead": window.ahead, "keep-latest": window.keep_latest, "max-drops": window.max_drops}


def range_partitions_of(properties: Mapping[str, str], schema: Schema) -> DefinedPartitions | None:
    """RP-1: the table's range partitions, for writers; None if it has none. Raises UnsupportedFeatureError for an
    unknown version or entry, and for range columns that were dropped or became nullable."""
    text = properties.get(RANGE_PARTITIONS)
    return None if text is None else _parsed(text, tuple(schema.fields))


def check_metrics(given: Mapping[str, str], properties: Mapping[str, str], schema: Schema) -> None:
    """FM-8, RP-7: check the metrics properties that a caller sets, for a table with `properties`. Raises
    UnknownColumnError or InvalidArgumentError if they are invalid."""
    check_metrics_columns(given, schema)
    asked = {name: value for name, value in given.items() if name.startswith(METRICS)}
    defined = range_partitions_of(properties, schema) if asked else None
    if defined is not None:
        refuse_lost_bounds(asked, schema, defined.key.field_ids)


@lru_cache(maxsize=64)
def _parsed(text: str, fields: tuple[NestedField, ...]) -> DefinedPartitions:
    value = _object(text)
    if value.get("version") != VERSION:
        raise UnsupportedFeatureError(
            f"the table has range partitions of version {value.get('version')!r}, but this library writes version "
            f"{VERSION} and could store rows outside the allowed ranges. Nothing was changed. Write with a newer "
            "version of the library."
        )
    unknown = sorted(value.keys() - _NAMES)
    if unknown:
        raise UnsupportedFeatureError(
            f"the range partitions of the table use {unknown[0]!r}, which this library does not know. Nothing was "
            "changed. Write with a newer version of the library."
        )
    try:
        return _defined(value, _columns(value["field-ids"], Schema(*fields)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedFeatureError(
            f"the table property {RANGE_PARTITIONS} cannot be read ({type(error).__name__}: {error}), so rows are "
            "not added. Nothing was changed. remove_properties() removes it, so that rows of all ranges are accepted."
        ) from error


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedFeatureError(f"the table property {RANGE_PARTITIONS} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UnsupportedFeatureError(f"the table property {RANGE_PARTITIONS} is not a JSON object.")
    return value


def _columns(field_ids: list[int], schema: Schema) -> KeyColumns:
    fields = {field.field_id: field for field in schema.fields}
    for field_id in field_ids:
        if field_id not in fields:
            raise InvalidKeyError(f"the range column with field id {field_id} was dropped")
        if not fields[field_id].required:
            raise InvalidKeyError(f"the range column {fields[field_id].name!r} has become nullable")
    key = KeyColumns.of(schema, field_ids)
    check_families(key)
    return key


def _defined(value: Mapping[str, Any], key: KeyColumns) -> DefinedPartitions:
    steps = None
    if "step" in value:
        duration = parse_duration(value["step"], option="step")
        steps = Steps(key.types[0], duration, value_from_json(value["origin"], key.types[0]), value["time-zone"])
    on_demand = None
    if value.get("on-demand"):
        limits = range_from_json(key, value["limits"]) if "limits" in value else None
        on_demand = OnDemand(limits=limits, max_new_per_commit=value["max-new-per-commit"])
    splits: tuple[Cut, ...] = tuple(cut_from_json(key, cut, is_upper=False) for cut in value.get("splits", ()))
    return DefinedPartitions(
        key=key,
        bounds=tuple(range_from_json(key, each) for each in value["bounds"]),
        splits=splits,
        steps=steps,
        on_demand=on_demand,
        has_default=bool(value.get("default", False)),
        window=Window(
            retain=parse_duration(value["retain"], option="retain") if "retain" in value else None,
            ahead=value.get("ahead", 0),
            keep_latest=value.get("keep-latest", 0),
            protect=tuple(range_from_json(key, each) for each in value.get("protect", ())),
            max_drops=value.get("max-drops"),
        ),
    )


def range_to_json(key: KeyColumns, given: Range) -> list[Any]:
    return [cut_to_json(key, given.lower), cut_to_json(key, given.upper)]


def range_from_json(key: KeyColumns, given: Any) -> Range:
    lower, upper = given
    return Range(cut_from_json(key, lower, is_upper=False), cut_from_json(key, upper, is_upper=True))


def refuse_coverage_set_by_hand(given: Mapping[str, str]) -> None:
    """RP-1: raise InvalidArgumentError if a caller sets the property. Removing a range without a snapshot would not
    conflict with a concurrent append."""
    if RANGE_PARTITIONS in given:
        raise InvalidArgumentError(
            f"{RANGE_PARTITIONS} cannot be set as a property. Define range partitions with "
            "create_table(range_partitions=...), and change them with table.range_partitions.alter(...). Nothing was "
            "changed."
        )
