"""Adds and drops CHECK constraints from Python: properties that both Spark and Python enforce."""

from __future__ import annotations

import re
from typing import Final

from pyiceberg.expressions import BooleanExpression, Not
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
)

from tableformat.commit.metadata_commit import no_ref_came
from tableformat.commit.read_only import refuse_read_only
from tableformat.errors import AlreadyExistsError, InvalidArgumentError, UnsupportedFeatureError, nearest_hint
from tableformat.filters.bound_filter import Always, BoundFilter, bind_filter, comparisons, to_expression
from tableformat.filters.predicate import Where, parse_false_where
from tableformat.filters.spark_text import spark_condition
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.operations.evolution.adopt import branches
from tableformat.operations.history.held_checks import checks_are
from tableformat.operations.history.references import commit_updates
from tableformat.properties import CHECK_EXPRESSION_PREFIX, CHECK_PREFIX
from tableformat.scan.scan import Scan
from tableformat.write.rows.checks import check_conditions

_NAME: Final = re.compile(r"\w+")


def add_check(iceberg: IcebergTable, name: str, condition: Where) -> None:
    """CK-8: add the constraint if no row of a branch breaks it, in a commit that fails if rows or columns changed in
    the meantime."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    metadata = iceberg.metadata
    schema = metadata.schema()
    _refuse_name(name, check_conditions(metadata.properties))
    optional = _all_optional(schema)
    broken = _broken(name, condition, optional)
    properties = _properties(name, broken, optional)
    _refuse_broken(iceberg, name, broken)
    unmoved = [
        AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": metadata.refs[branch].snapshot_id})
        for branch in branches(iceberg)
    ]
    if not unmoved:
        unmoved = [AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": None})]
    same_columns = AssertCurrentSchemaId.model_validate({"current-schema-id": schema.schema_id})
    came = (*no_ref_came(iceberg), *checks_are(metadata, iceberg.catalog))
    update = SetPropertiesUpdate(updates=properties)
    # A branch or a constraint of this name may have been added, too. Catalog servers know no requirement for this.
    commit_updates(iceberg, (same_columns, *unmoved, *came), (update,), is_tried_again=False)


def drop_check(iceberg: IcebergTable, name: str) -> None:
    """Remove a constraint; its name is not case-sensitive. Raises InvalidArgumentError if it does not exist."""
    refuse_read_only(iceberg)
    move_to_newest(iceberg)
    known = check_conditions(iceberg.metadata.properties)
    found = next((each for each in known if each.casefold() == name.casefold()), None)
    if found is None:
        raise InvalidArgumentError(
            f"{'.'.join(iceberg.name())} has no CHECK constraint {name!r}. It has: {', '.join(known) or 'none'}."
            f"{nearest_hint(name, known)}"
        )
    names = (f"{CHECK_PREFIX}{found}", f"{CHECK_EXPRESSION_PREFIX}{found}")
    removals = [each for each in names if each in iceberg.metadata.properties]
    commit_updates(iceberg, (), (RemovePropertiesUpdate(removals=removals),))


def _refuse_name(name: str, known: dict[str, str]) -> None:
    """CK-9: raise an error for an invalid name, and for a name in use."""
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"a CHECK constraint cannot be named {name!r}: use letters, digits and underscores. Nothing was changed."
        )
    found = next((each for each in known if each.casefold() == name.casefold()), None)
    if found is not None:
        raise AlreadyExistsError(
            f"the CHECK constraint {found!r} already exists: {known[found]}. drop_check({found!r}) removes it."
        )


def _all_optional(schema: Schema) -> Schema:
    """CK-7: the schema with only optional columns. A column that is required now may become optional, and then IS NOT
    NULL can be false."""
    return Schema(*(field.model_copy(update={"required": False}) for field in schema.fields))


def _broken(name: str, condition: Where, schema: Schema) -> BoundFilter:
    """CK-7: the filter that is true if the condition is false."""
    broken = parse_false_where(condition, schema)
    if isinstance(broken, Always):
        told = "every row violates it" if broken.answer else "no row can violate it"
        raise InvalidArgumentError(f"CHECK constraint {name!r} has no effect: {told}. Nothing was changed.")
    return broken


def _properties(name: str, broken: BoundFilter, schema: Schema) -> dict[str, str]:
    """CK-7: the condition as Spark SQL and as an expression, both false for the rows that break it."""
    holds = bind_filter(Not(to_expression(broken)), schema)
    condition = spark_condition(holds)
    expression = to_expression(holds).model_dump_json()
    if bind_filter(BooleanExpression.model_validate_json(expression), schema) != holds:
        raise UnsupportedFeatureError(
            f"CHECK constraint {name!r} cannot be stored: {condition} changes its meaning when it is written to and "
            "read from the JSON of Iceberg expressions. Nothing was changed. Compare a column of another type."
        )
    return {f"{CHECK_PREFIX}{name}": condition, f"{CHECK_EXPRESSION_PREFIX}{name}": expression}


def _refuse_broken(iceberg: IcebergTable, name: str, broken: BoundFilter) -> None:
    """CK-8: raise InvalidArgumentError if existing rows break the constraint. Files are excluded by their metadata; the
    others are read, with their deletes applied."""
    where = to_expression(broken)
    columns = sorted({leaf.path[0] for leaf in comparisons(broken)})
    for branch in branches(iceberg):
        view = head_view(iceberg.metadata, iceberg.io, branch)
        example = Scan(view, where, columns, limit=1).to_arrow().to_pylist()
        if example:
            raise InvalidArgumentError(
                f"CHECK constraint {name!r} cannot be added: rows of branch {branch!r} violate it, for example one "
                f"with {example[0]}. Nothing was changed. Delete or update these rows first."
            )
