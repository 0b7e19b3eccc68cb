"""Views of a REST catalog, kept by its service. PyIceberg creates, loads, lists and drops; the rest is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.catalog.rest import Capability, Endpoints, IdentifierKind, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.typedef import Identifier
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata
from requests import ConnectionError, HTTPError, Timeout

from tableformat.catalogs.unreachable import unreachable
from tableformat.catalogs.views.view_metadata import (
    ViewDefinition,
    fresh_schema,
    new_version,
    replaced_metadata,
)
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    NamespaceNotFoundError,
    UnsupportedFeatureError,
    ViewNotFoundError,
)
from tableformat.metadata.identifiers import identifier_text

_LAST_ADDED: Final = -1
"""In the updates of a request, the id of the schema or version that an earlier update of the same request adds."""
_RENAME: Final = "views/rename"


class RestViews:
    """A `ViewStore` over a REST catalog."""

    def __init__(self, catalog: RestCatalog) -> None:
        self._catalog = catalog

    def list(self, namespace: Identifier) -> list[Identifier]:
        return sorted(self._catalog.list_views(namespace)) if self._has_views else []

    def load(self, identifier: Identifier) -> View | None:
        if not self._has_views:
            return None
        try:
            return self._loaded(identifier)
        except (NoSuchViewError, NoSuchNamespaceError):
            return None

    def create(
        self,
        identifier: Identifier,
        definition: ViewDefinition,
        properties: Mapping[str, str],
        location: str | None = None,
    ) -> View:
        self._check_ability()
        schema = fresh_schema(definition.schema, schema_id=0)
        version = new_version(definition, version_id=1, schema_id=0)
        self._check_namespace(identifier)
        try:
            self._catalog.create_view(identifier, schema, version, location, dict(properties))
            return self._loaded(identifier)
        except (ViewAlreadyExistsError, TableAlreadyExistsError) as error:
            raise _exists_already(identifier) from error

    def replace(self, view: View, definition: ViewDefinition, properties: Mapping[str, str]) -> View:
        after = replaced_metadata(view.metadata, definition, properties)
        identifier = view.name()
        request = {
            "identifier": {"namespace": list(identifier[:-1]), "name": identifier[-1]},
            "requirements": [{"type": "assert-view-uuid", "uuid": view.metadata.view_uuid}],
            "updates": _updates(view.metadata, after),
        }
        path = self._catalog._split_identifier_for_path(identifier, IdentifierKind.VIEW)
        self._post(self._catalog.url(Endpoints.load_view, prefixed=True, **path), request, identifier, identifier)
        return self._loaded(identifier)

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        self._check_ability()
        self._check_namespace(to)
        request = {
            "source": {"namespace": list(identifier[:-1]), "name": identifier[-1]},
            "destination": {"namespace": list(to[:-1]), "name": to[-1]},
        }
        try:
            self._post(self._catalog.url(_RENAME), request, identifier, to)
        except CommitConflictError as error:
            raise _exists_already(to) from error

    def drop(self, identifier: Identifier) -> bool:
        if not self._has_views:
            return False
        try:
            self._catalog.drop_view(identifier)
        except (NoSuchViewError, NoSuchNamespaceError):
            return False
        return True

    def _loaded(self, identifier: Identifier) -> View:
        view: View = self._catalog.load_view(identifier)
        return view

    @property
    def _has_views(self) -> bool:
        return Capability.V1_LOAD_VIEW in self._catalog._supported_endpoints

    def _check_ability(self) -> None:
        if not self._has_views:
            raise UnsupportedFeatureError(
                f"the service of catalog {self._catalog.name!r} does not advertise support for views. If it has "
                "views, set the catalog option view-endpoints-supported=true."
            )

    def _check_namespace(self, identifier: Identifier) -> None:
        if not self._catalog.namespace_exists(identifier[:-1]):
            raise NamespaceNotFoundError(
                f"no namespace {identifier_text(identifier[:-1])!r}. Create it with create_namespace()."
            )

    def _post(self, url: str, request: dict[str, Any], identifier: Identifier, taken: Identifier) -> None:
        """404 is reported for `identifier`; 409 means that `taken` was changed or exists. LK-11: StorageError without
        an answer."""
        try:
            response = self._catalog._session.post(url, json=request)
        except (ConnectionError, Timeout) as outage:
            raise unreachable(self._catalog.name, outage) from outage
        try:
            response.raise_for_status()
        except HTTPError as error:
            try:
                _handle_non_200_response(error, {404: NoSuchViewError, 409: CommitFailedException})
            except NoSuchViewError as missing:
                raise ViewNotFoundError(f"no view {identifier_text(identifier)!r}.") from missing
            except CommitFailedException as conflict:
                raise CommitConflictError(
                    f"view {identifier_text(taken)} was changed by another writer: {conflict}. Nothing was changed. "
                    "Run the statement again."
                ) from conflict


def _updates(before: ViewMetadata, after: ViewMetadata) -> list[dict[str, Any]]:
    """The difference as updates in the form that the service expects."""
    updates: list[dict[str, Any]] = []
    current = next(each for each in after.versions if each.version_id == after.current_version_id)
    if all(each.version_id != current.version_id for each in before.versions):
        schema = next(each for each in after.schemas if each.schema_id == current.schema_id)
        if all(each.schema_id != schema.schema_id for each in before.schemas):
            updates.append({"action": "add-schema", "schema": _json(schema), "last-column-id": schema.highest_field_id})
            current = current.model_copy(update={"schema_id": _LAST_ADDED})
        updates.append({"action": "add-view-version", "view-version": _json(current)})
        updates.append({"action": "set-current-view-version", "view-version-id": _LAST_ADDED})
    elif current.version_id != before.current_version_id:
        updates.append({"action": "set-current-view-version", "view-version-id": current.version_id})
    if after.properties:
        updates.append({"action": "set-properties", "updates": after.properties})
    removed = sorted(before.properties.keys() - after.properties.keys())
    if removed:
        updates.append({"action": "remove-properties", "removals": removed})
    return updates


def _json(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _exists_already(identifier: Identifier) -> AlreadyExistsError:
    return AlreadyExistsError(f"{identifier_text(identifier)!r} exists already, as a table or as a view.")
