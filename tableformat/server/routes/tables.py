"""Tables: list, create, register, load, commit, rename, drop."""

from __future__ import annotations

from typing import Any, Final, cast

from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, CreateTableTransaction, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import AddSnapshotUpdate, AssertCreate
from pyiceberg.typedef import Identifier
from starlette.responses import Response

from tableformat.catalogs.unreachable import creation_without_answer
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.new_names import check_new_name
from tableformat.metadata.statistics_files import accept_every_blob_type
from tableformat.reports.report import parse_report
from tableformat.reports.reporting import send
from tableformat.server.answers import json_answer, nothing, text_answer
from tableformat.server.column_defaults import refuse_early_defaults, with_defaults_of
from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest, identifier_of, page_of
from tableformat.server.routes.names import check_free, check_free_for
from tableformat.server.routes.namespaces import check_exists
from tableformat.server.routes.route import Route
from tableformat.server.send_commits import send_commits
from tableformat.server.served_metadata import metadata_text, only_refs, table_result

accept_every_blob_type()  # Requests of engines are parsed by PyIceberg.


def _list(server: ServerContext, request: ApiRequest) -> Response:
    check_exists(server, request.namespace)
    names = sorted(server.catalog.iceberg.list_tables(request.namespace))
    page, token = page_of(names, request.query)
    identifiers = [{"namespace": list(name[:-1]), "name": name[-1]} for name in page]
    return json_answer({"identifiers": identifiers, "next-page-token": token})


def _create(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    identifier = (*request.namespace, str(body["name"]))
    check_exists(server, request.namespace)
    check_free(server, identifier, "Table")
    staged = _staged(server, identifier, body)
    if body.get("stage-create"):
        fields = _config(server, request, identifier, staged.metadata, None)
        return text_answer(table_result(metadata_text(staged.metadata), None, **fields))
    with creation_without_answer(server.catalog.iceberg, ".".join(identifier)):
        CreateTableTransaction(staged).commit_transaction()
    return _loaded(server, request, identifier)


def _staged(server: ServerContext, identifier: Identifier, body: dict[str, Any]) -> StagedTable:
    """A new table that is not in the catalog yet. Its schema has new field ids, and the defaults of the request."""
    schema, spec, order = Schema.model_validate(body["schema"]), body.get("partition-spec"), body.get("write-order")
    creation = server.catalog.iceberg.create_table_transaction(
        identifier,
        schema,
        body.get("location"),
        PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
        SortOrder.model_validate(order) if order else UNSORTED_SORT_ORDER,
        {str(name): str(value) for name, value in (body.get("properties") or {}).items()},
    )
    staged = cast(StagedTable, creation._table)
    refuse_early_defaults(schema, staged.metadata.format_version)
    staged.metadata = staged.metadata.model_copy(
        update={"schemas": [with_defaults_of(schema, fresh) for fresh in staged.metadata.schemas]}
    )
    return staged


def _register(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    if body.get("overwrite"):
        raise UnsupportedFeatureError("a table that exists cannot be registered again. Drop it first.")
    identifier = (*request.namespace, str(body["name"]))
    check_exists(server, request.namespace)
    check_free(server, identifier, "Table")
    server.catalog.register_table(identifier, str(body["metadata-location"]))
    return _loaded(server, request, identifier)


def _load(server: ServerContext, request: ApiRequest) -> Response:
    identifier = request.identifier("table")
    served = server.tables.load(identifier)
    mode = request.query.get("snapshots", "all")
    etag = served.etag if mode == "all" else f'"{mode}-{served.etag[1:]}'
    if etag in (request.headers.get("if-none-match") or ""):
        return Response(status_code=304, headers={"ETag": etag})
    if mode not in ("all", "refs"):
        raise InvalidArgumentError(f"snapshots must be all or refs, not {mode!r:.80}.")
    text = served.text if mode == "all" else metadata_text(only_refs(served.metadata))
    fields = _config(server, request, identifier, served.metadata, served.metadata_location)
    return text_answer(table_result(text, served.metadata_location, **fields), {"ETag": etag})


def _exists(server: ServerContext, request: ApiRequest) -> Response:
    return nothing(204 if server.catalog.iceberg.table_exists(request.identifier("table")) else 404)


def _commit(server: ServerContext, request: ApiRequest) -> Response:
    identifier = request.identifier("table")
    commit = commit_request(identifier, request.json())
    if any(isinstance(each, AssertCreate) for each in commit.requirements):
        _create_staged(server, identifier, commit)
        served = server.tables.load(identifier)
    else:
        send_commits(server.catalog.iceberg, [(identifier, commit)])
        adds = any(isinstance(each, AddSnapshotUpdate) for each in commit.updates)
        served = server.tables.after_commit(identifier, adds_snapshot=adds)
    return text_answer(table_result(served.text, served.metadata_location), {"ETag": served.etag})


def commit_request(identifier: Identifier, body: dict[str, Any]) -> CommitTableRequest:
    """Parse the changes of one table. Raises a validation error for updates that this server does not know."""
    named = {"namespace": list(identifier[:-1]), "name": identifier[-1]}
    return CommitTableRequest.model_validate({**body, "identifier": named})


def _create_staged(server: ServerContext, identifier: Identifier, commit: CommitTableRequest) -> None:
    """Create the table that a client built from a staged creation."""
    check_exists(server, identifier[:-1])
    check_new_name(identifier, "table")
    if server.catalog.iceberg.table_exists(identifier):
        raise CommitFailedException("Requirement failed: table already exists")
    check_free(server, identifier, "Table")
    backend = server.catalog.iceberg
    # PyIceberg's catalogs take the name from the table, and build its metadata from the updates.
    unborn = Table(identifier, _no_metadata(), "", load_file_io(dict(backend.properties)), backend)
    try:
        backend.commit_table(unborn, commit.requirements, commit.updates)
    except TableAlreadyExistsError as error:
        raise CommitFailedException("Requirement failed: table already exists") from error


def _no_metadata() -> TableMetadata:
    return TableMetadataV2.model_validate(
        {
            "location": "",
            "last-column-id": -1,
            "schemas": [Schema()],
            "current-schema-id": 0,
            "partition-specs": [PartitionSpec()],
        }
    )


def _rename(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    source, destination = identifier_of(body["source"]), identifier_of(body["destination"])
    check_exists(server, destination[:-1])
    if not server.catalog.iceberg.table_exists(source):
        raise NoSuchTableError(f"Table does not exist: {'.'.join(source)}")
    check_free_for(server, source, destination)
    server.catalog.rename_table(source, destination)
    return nothing()


def _drop(server: ServerContext, request: ApiRequest) -> Response:
    purge = (request.query.get("purgeRequested") or "false").lower() == "true"
    identifier = request.identifier("table")
    if not server.catalog.iceberg.table_exists(identifier):
        raise NoSuchTableError(f"Table does not exist: {'.'.join(identifier)}")
    server.catalog.drop_table(identifier, purge=purge)
    return nothing()


def _metrics(server: ServerContext, request: ApiRequest) -> Response:
    """The report of a client's scan or commit goes to the reporter of the catalog (`Catalog.report_to`)."""
    report = parse_report(identifier_text(request.identifier("table")), request.json())
    send(server.catalog.iceberg, report)
    return nothing()


def _credentials(server: ServerContext, request: ApiRequest) -> Response:
    identifier = request.identifier("table")
    table = server.catalog.iceberg.load_table(identifier)
    if server.vendor is not None:
        vended = server.vendor.credentials(identifier, table.metadata, table.metadata_location)
        return json_answer({"storage-credentials": [] if vended is None else [vended.to_json()]})
    config = dict(server.options.client_config)
    return json_answer({"storage-credentials": [{"prefix": "", "config": config}] if config else []})


def _loaded(server: ServerContext, request: ApiRequest, identifier: Identifier) -> Response:
    served = server.tables.load(identifier)
    fields = _config(server, request, identifier, served.metadata, served.metadata_location)
    return text_answer(table_result(served.text, served.metadata_location, **fields), {"ETag": served.etag})


def _config(
    server: ServerContext, request: ApiRequest, identifier: Identifier, metadata: TableMetadata, location: str | None
) -> dict[str, Any]:
    """The configuration of a table, and its credentials if the client asks for them.

    The configuration has them as well, because older clients read no `storage-credentials`.
    """
    config = dict(server.options.client_config)
    delegation = request.headers.get("x-iceberg-access-delegation", "").lower()
    asks = "vended-credentials" in [each.strip() for each in delegation.split(",")]
    vended = server.vendor.credentials(identifier, metadata, location) if server.vendor is not None and asks else None
    if vended is None:
        return {"config": config}
    return {"config": {**config, **vended.config}, "storage_credentials": [vended.to_json()]}


ROUTES: Final = (
    Route("GET", "namespaces/{namespace}/tables", _list),
    Route("POST", "namespaces/{namespace}/tables", _create, changes=True),
    Route("POST", "namespaces/{namespace}/register", _register, changes=True),
    Route("GET", "namespaces/{namespace}/tables/{table}", _load),
    Route("HEAD", "namespaces/{namespace}/tables/{table}", _exists),
    Route("POST", "namespaces/{namespace}/tables/{table}", _commit, changes=True),
    Route("DELETE", "namespaces/{namespace}/tables/{table}", _drop, changes=True),
    Route("POST", "namespaces/{namespace}/tables/{table}/metrics", _metrics),
    Route("GET", "namespaces/{namespace}/tables/{table}/credentials", _credentials),
    Route("POST", "tables/rename", _rename, changes=True),
)
