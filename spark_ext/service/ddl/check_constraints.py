"""CHECK constraints in the form that Spark sends, and the table properties that store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import ValidationError
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    SetPropertiesUpdate,
    TableRequirement,
)

from spark_ext.service.wire.expressions import compares_with_null, exact_filter
from tableformat.errors import AlreadyExistsError, TableFormatError
from tableformat.filters.bound_filter import bind_filter
from tableformat.operations.history.held_checks import checks_are
from tableformat.operations.history.references import commit_updates
from tableformat.properties import CHECK_EXPRESSION_PREFIX, CHECK_PREFIX
from tableformat.table import Table
from tableformat.write.rows.checks import check_conditions

CheckJson: TypeAlias = Mapping[str, Any]
"""A constraint, in the form that `DdlJson` of the Java side writes: `name`, `condition` and, if Spark has one,
`predicate`."""


def check_properties(checks: Sequence[CheckJson], schema: Schema) -> dict[str, str]:
    """CK-1: the properties that store the constraints."""
    properties = {}
    for check in checks:
        properties[f"{CHECK_PREFIX}{check['name']}"] = check["condition"]
        expression = _expression(check, schema)
        if expression is not None:
            properties[f"{CHECK_EXPRESSION_PREFIX}{check['name']}"] = expression
    return properties


def add_checks(table: Table, checks: Sequence[CheckJson], validated_version: str | None) -> None:
    """ALTER TABLE ADD CONSTRAINT. Spark has already checked the rows of the snapshot `validated_version`."""
    known = {name.casefold(): name for name in check_conditions(table.properties)}
    for check in checks:
        if check["name"].casefold() in known:
            raise AlreadyExistsError(f"{table.name} already has a constraint {known[check['name'].casefold()]!r}.")
    added = check_properties(checks, table.metadata.schema())
    if added:
        schema_id = table.metadata.current_schema_id
        same_columns = AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id})
        same_rows = () if validated_version is None else (_still_at(validated_version),)
        update = SetPropertiesUpdate(updates=added)
        same_checks = checks_are(table.metadata, table.iceberg.catalog)
        commit_updates(table.iceberg, (same_columns, *same_rows, *same_checks), (update,), is_tried_again=False)


def drop_constraint(table: Table, name: str, *, if_exists: bool) -> None:
    """ALTER TABLE DROP CONSTRAINT."""
    known = {each.casefold() for each in check_conditions(table.properties)}
    if name.casefold() in known or not if_exists:
        table.drop_check(name)


def _still_at(version: str) -> TableRequirement:
    snapshot_id = None if version == "null" else int(version)
    return AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": snapshot_id})


def _expression(check: CheckJson, schema: Schema) -> str | None:
    """The condition as JSON of an Iceberg expression. None if no expression has exactly the same meaning.

    A row for which the condition is unknown passes, but a filter evaluates to false for nulls (SP-93). Such conditions
    have no expression.
    """
    predicate = check.get("predicate")
    where = None if predicate is None or compares_with_null(predicate) else exact_filter([predicate], schema)
    if where is None:
        return None
    text = where.model_dump_json()
    try:
        # Some literals change in a JSON round trip, for example times lose their zone.
        again = bind_filter(BooleanExpression.model_validate_json(text), schema)
    except (TableFormatError, ValidationError):
        return None
    return text if again == bind_filter(where, schema) else None
