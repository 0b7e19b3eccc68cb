"""The view of other engines on a table, and how they connect."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from starlette.responses import Response

from tableformat.commit.change import KEYED_KINDS
from tableformat.engines.attachment import quoted
from tableformat.maintenance.conversion.staged_conversion import delete_kinds
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.staged_conversions import STAGED_AT_MS, source_of, staged_conversions
from tableformat.server.delete_format import unreadable_reason
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.table_pages import table_page

_CATALOG = "lake"
"""The name of the catalog in the examples."""


@dataclass(frozen=True, slots=True)
class ServedConversion:
    """A staged conversion, as other engines get it."""

    snapshot_id: int
    source_id: int
    age_seconds: float | None
    """Since it was staged; None if its writer did not state it."""
    source_age_seconds: float | None
    """Since its source was committed; None if the source has expired."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """How an engine connects."""

    engine: str
    text: str


def engines(page: PageContext, request: PageRequest) -> Response:
    """Whether keyed deletes are pending, the conversion that is served, and the settings of each engine.

    Nothing is converted for this page.
    """
    table = page.server.catalog.load_table(request.table)
    metadata = table.metadata
    head = metadata.current_snapshot()
    kinds = delete_kinds(table.view)
    is_pending = not KEYED_KINDS.isdisjoint(kinds)
    conversions = staged_conversions(metadata)
    newest = max(conversions.values(), key=_staged_at_ms, default=None)
    served = None if head is None else conversions.get(head.snapshot_id)
    has_token = not page.server.access.is_open
    values = {
        "head": head,
        "head_age_seconds": None if head is None else _age(head.timestamp_ms),
        "is_pending": is_pending,
        "refused": unreadable_reason(metadata, kinds, page.server.options.delete_format),
        "served": None if served is None or not is_pending else _served(metadata, served),
        "newest": None if newest is None else _served(metadata, newest),
        "freshness_seconds": page.server.options.freshness_seconds,
        "read_only": page.server.options.read_only,
        "snippets": snippets(request.base_url, request.table, has_token=has_token),
        "has_token": has_token,
    }
    return table_page(page, request, "engines", values)


def snippets(url: str, identifier: str, *, has_token: bool) -> list[Snippet]:
    """The settings of each engine for a server at `url`. The token is left out, because this is shown on a screen."""
    *namespace, name = identifier_parts(identifier)
    schema = identifier_text(namespace)
    token = "<token>"
    python_token = f', token="{token}"' if has_token else ""
    spark_token = f'    .config("spark.sql.catalog.{_CATALOG}.token", "{token}")\n' if has_token else ""
    trino_token = f"iceberg.rest-catalog.security=OAUTH2\niceberg.rest-catalog.oauth2.token={token}\n"
    flink_token = f", 'token'='{token}'" if has_token else ""
    duckdb_access = f"TOKEN '{token}'" if has_token else "AUTHORIZATION_TYPE 'none'"
    ticked = ".".join("`" + part.replace("`", "``") + "`" for part in (*namespace, name))
    return [
        Snippet(
            "PyIceberg",
            "from pyiceberg.catalog import load_catalog\n"
            f'catalog = load_catalog("{_CATALOG}", type="rest", uri="{url}"{python_token})\n'
            f"catalog.load_table({(*namespace, name)!r}).scan().to_arrow()",
        ),
        Snippet(
            "Spark",
            "spark = (SparkSession.builder\n"
            f'    .config("spark.sql.catalog.{_CATALOG}", "org.apache.iceberg.spark.SparkCatalog")\n'
            f'    .config("spark.sql.catalog.{_CATALOG}.type", "rest")\n'
            f'    .config("spark.sql.catalog.{_CATALOG}.uri", "{url}")\n'
            f"{spark_token}"
            "    .getOrCreate())\n"
            f'spark.sql("""SELECT * FROM {_CATALOG}.{ticked}""")',
        ),
        Snippet(
            "DuckDB",
            "INSTALL iceberg; LOAD iceberg;\n"
            f"ATTACH '' AS {_CATALOG} (TYPE iceberg, ENDPOINT '{url}', {duckdb_access});\n"
            f"FROM {_CATALOG}.{quoted(schema)}.{quoted(name)};",
        ),
        Snippet(
            "Flink",
            f"CREATE CATALOG {_CATALOG} WITH ('type'='iceberg', 'catalog-type'='rest', 'uri'='{url}'{flink_token},\n"
            "    'cache-enabled'='false');\n"
            f"SELECT * FROM {_CATALOG}.{ticked};",
        ),
        Snippet(
            "Trino",
            f"# etc/catalog/{_CATALOG}.properties\n"
            "connector.name=iceberg\n"
            "iceberg.catalog.type=rest\n"
            f"iceberg.rest-catalog.uri={url}\n"
            f"{trino_token if has_token else ''}"
            f"\nSELECT * FROM {_CATALOG}.{quoted(schema)}.{quoted(name)}",
        ),
    ]


def _served(metadata: TableMetadata, staged: Snapshot) -> ServedConversion:
    source_id = source_of(staged)
    assert source_id is not None, "the snapshot is a conversion"
    source, staged_at_ms = snapshot_by_id(metadata, source_id), _staged_at_ms(staged)
    return ServedConversion(
        staged.snapshot_id,
        source_id,
        _age(staged_at_ms) if staged_at_ms else None,
        None if source is None else _age(source.timestamp_ms),
    )


def _staged_at_ms(snapshot: Snapshot) -> int:
    text = "" if snapshot.summary is None else snapshot.summary.additional_properties.get(STAGED_AT_MS, "")
    return int(text) if text.isdecimal() else 0


def _age(since_ms: int) -> float:
    return max(time.time() - since_ms / 1_000, 0.0)
