"""Views: CREATE, REPLACE, ALTER, DROP, SHOW, and the data needed to read a view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import StructType
from pyiceberg.view import View

from spark_ext.service.ddl.tables import PROVIDER
from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from spark_ext.service.wire.spark_types import iceberg_type, spark_schema
from tableformat.catalogs.catalog_properties import VIEW, properties_of_new
from tableformat.catalogs.views.view_metadata import ViewDefinition
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError, ViewNotFoundError
from tableformat.metadata.identifiers import identifier_text

DIALECT: Final = "spark"
QUERY_COLUMNS: Final = "spark.query-column-names"
"""Iceberg's property with the column names of the query, separated by commas."""
_SQL_CONFIG: Final = "spark.sql-config."
_SCHEMA_MODE: Final = "spark.schema-mode"
"""Summary entries of a view version: the SQL settings in effect at its creation, and Spark's behavior when the tables
below it change."""
_STATED: Final = ("provider", "location")
"""Properties that a view displays, as a table does, and that cannot be set."""
_FORMAT_VERSION: Final = "format-version"
_OF_SPARK: Final = frozenset({"owner", "table_type"})
"""Properties that Spark adds."""
_PLAIN: Final = "VIEW"


@method("list_views")
def list_views(session: Session, request: Request) -> list[str]:
    """Names of the views in the namespace, without the namespace."""
    session.catalog.list_views(request.namespace)
    return [identifier[-1] for identifier in session.catalog.views.list(request.namespace)]


@method("load_view")
def load_view(session: Session, request: Request) -> dict[str, Any] | None:
    """The view; null if no view has that name."""
    identifier = request.table
    view = session.catalog.views.load(identifier) if len(identifier) > 1 else None
    return None if view is None else describe_view(view)


@method("create_view")
def create_view(session: Session, request: Request) -> dict[str, Any]:
    """CREATE VIEW, with `sql`, `schema` and the other arguments of the statement."""
    properties = properties_of_new(VIEW, session.catalog.iceberg.properties, request.arguments["properties"])
    location = properties.pop("location", None)
    properties.pop("provider", None)
    _refuse_reserved(properties)
    definition = _definition(request)
    stored = _stored_properties(request, properties)
    return describe_view(session.catalog.views.create(_named(request.table), definition, stored, location))


@method("create_or_replace_view")
def create_or_replace_view(session: Session, request: Request) -> dict[str, Any]:
    """CREATE OR REPLACE VIEW. Only the properties of the statement and the catalog apply."""
    view = session.catalog.views.load(_named(request.table))
    if view is None:
        made: dict[str, Any] = create_view(session, request)
        return made
    shown = _stated_properties(view)
    given = properties_of_new(VIEW, session.catalog.iceberg.properties, request.arguments["properties"])
    properties = {name: value for name, value in given.items() if shown.get(name) != value}
    properties.pop("provider", None)
    return _replaced(session, request, view, properties)


@method("replace_view")
def replace_view(session: Session, request: Request) -> dict[str, Any]:
    """ALTER VIEW: the loaded view with the changes of the statement."""
    view = session.catalog.views.load(_named(request.table))
    if view is None:
        raise ViewNotFoundError(f"no view {identifier_text(request.table)!r}.")
    given = request.arguments["properties"]
    shown = _stated_properties(view)
    lost = [name for name in shown if name not in given]
    if lost:
        raise InvalidArgumentError(
            f"{', '.join(lost)}: this property of a view cannot be removed. Nothing was changed."
        )
    return _replaced(session, request, view, {name: value for name, value in given.items() if shown.get(name) != value})


@method("drop_view")
def drop_view(session: Session, request: Request) -> bool:
    """Drop the view. Returns whether it existed."""
    return session.catalog.views.drop(_named(request.table))


@method("rename_view")
def rename_view(session: Session, request: Request) -> None:
    session.catalog.views.rename(_named(request.table), _named(tuple(request.arguments["to"])))


def _named(identifier: tuple[str, ...]) -> tuple[str, ...]:
    """Raises InvalidArgumentError for a name without a namespace: neither the session nor the statement names one."""
    if len(identifier) < 2:
        raise InvalidArgumentError(
            f"{identifier_text(identifier)!r} is not the name of a view: write 'lake.db.v', or run USE lake.db first."
        )
    return identifier


def describe_view(view: View) -> dict[str, Any]:
    """The description of the view that Java needs to read it. Raises UnsupportedFeatureError for a view without SQL for
    Spark."""
    query = view.sql_for(DIALECT)
    version = view.current_version()
    if query is None:
        dialects = ", ".join(each.root.dialect for each in version.representations)
        raise UnsupportedFeatureError(
            f"view {identifier_text(view.name())} has SQL for {dialects}, but not for Spark. Use CREATE OR REPLACE "
            "VIEW to add it."
        )
    summary = version.summary
    return {
        "sql": query.sql,
        "catalog": version.default_catalog,
        "namespace": list(version.default_namespace),
        "schema": spark_schema(view.schema()),
        "query_columns": _query_columns(view),
        "sql_configs": {
            name.removeprefix(_SQL_CONFIG): value for name, value in summary.items() if name.startswith(_SQL_CONFIG)
        },
        "schema_mode": summary.get(_SCHEMA_MODE),
        "properties": {
            **{name: value for name, value in view.properties.items() if name != QUERY_COLUMNS},
            **_stated_properties(view),
        },
    }


def _replaced(session: Session, request: Request, view: View, properties: Mapping[str, str]) -> dict[str, Any]:
    _refuse_reserved(properties)
    stored = _stored_properties(request, properties)
    return describe_view(session.catalog.views.replace(view, _definition(request), stored))


def _definition(request: Request) -> ViewDefinition:
    """SQ-26: the definition of the view. It stores the session settings that affect the meaning of its SQL, as selected
    by Spark."""
    arguments = request.arguments
    kind = arguments["properties"].get("table_type", _PLAIN)
    if kind != _PLAIN:
        raise UnsupportedFeatureError(
            f"view {identifier_text(request.table)}: Iceberg supports only plain views, not views of the kind {kind}."
        )
    names = arguments["query_columns"]
    return ViewDefinition(
        sql=arguments["sql"],
        dialect=DIALECT,
        schema=_schema(arguments["schema"]),
        default_namespace=tuple(arguments["namespace"]),
        default_catalog=arguments["catalog"],
        summary={
            "engine-name": DIALECT,
            "engine-version": arguments["engine_version"],
            **{f"{_SQL_CONFIG}{name}": value for name, value in sorted(arguments["sql_configs"].items())},
            **({_SCHEMA_MODE: arguments["schema_mode"]} if arguments["schema_mode"] else {}),
            **({QUERY_COLUMNS: json.dumps(names)} if any("," in name for name in names) else {}),
        },
    )


def _schema(schema: dict[str, Any]) -> Schema:
    struct = iceberg_type(schema, "view")
    assert isinstance(struct, StructType), "the columns of a view are a struct"
    return Schema(*struct.fields)


def _stored_properties(request: Request, properties: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in properties.items() if name not in _OF_SPARK}
    return {**kept, QUERY_COLUMNS: ",".join(request.arguments["query_columns"])}


def _stated_properties(view: View) -> dict[str, str]:
    return dict(zip(_STATED, (PROVIDER, view.location()), strict=True))


def _refuse_reserved(properties: Mapping[str, str]) -> None:
    set_by_hand = sorted(properties.keys() & {*_STATED, _FORMAT_VERSION, QUERY_COLUMNS})
    if set_by_hand:
        raise InvalidArgumentError(
            f"{', '.join(set_by_hand)}: this property of a view is computed and cannot be set. Nothing was changed."
        )


def _query_columns(view: View) -> list[str]:
    """The column names of the query. Empty if the writer of the view did not record them; then the names of the view's
    columns apply."""
    quoted = view.current_version().summary.get(QUERY_COLUMNS)
    if quoted is not None:
        return list(json.loads(quoted))
    names = view.properties.get(QUERY_COLUMNS, "")
    return names.split(",") if names else []
