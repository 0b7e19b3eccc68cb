"""A lakehouse table format for Python, Spark and DuckDB: Apache Iceberg tables with range deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tableformat import errors
from tableformat.errors import TableFormatError

if TYPE_CHECKING:
    from tableformat.catalogs.catalog import Catalog
    from tableformat.catalogs.open_catalog import open_catalog
    from tableformat.catalogs.static_table import read_metadata
    from tableformat.changes.changes import Changes
    from tableformat.engines import duckdb
    from tableformat.maintenance.conversion.convert_deletes import ConvertResult
    from tableformat.maintenance.erasure.certificate import ErasureCertificate
    from tableformat.operations.catalog_transaction import CatalogTransaction
    from tableformat.operations.staged_write import StagedWrite
    from tableformat.operations.staging.result import CommitResult
    from tableformat.operations.transaction import Transaction
    from tableformat.range_partitions.model import Bound, RangePartitions, bound, list_partitions
    from tableformat.reports.open_telemetry import OpenTelemetryReporter
    from tableformat.scan.explain import ScanExplanation
    from tableformat.scan.plan import ScanPlan
    from tableformat.scan.scan import Scan
    from tableformat.server.running import serve
    from tableformat.table import Table
    from tableformat.write.staged import StagedFiles

__all__ = [
    "Bound",
    "Catalog",
    "CatalogTransaction",
    "Changes",
    "CommitResult",
    "ConvertResult",
    "ErasureCertificate",
    "OpenTelemetryReporter",
    "RangePartitions",
    "Scan",
    "ScanExplanation",
    "ScanPlan",
    "StagedFiles",
    "StagedWrite",
    "Table",
    "TableFormatError",
    "Transaction",
    "bound",
    "duckdb",
    "errors",
    "list_partitions",
    "open_catalog",
    "read_metadata",
    "serve",
]

# Names are imported when they are first asked for: the command line and Spark's Python workers import this package
# without needing most of it, and pyarrow and PyIceberg take more than a second.
_HOMES = {
    "Catalog": "catalogs.catalog",
    "open_catalog": "catalogs.open_catalog",
    "Changes": "changes.changes",
    "ConvertResult": "maintenance.conversion.convert_deletes",
    "ErasureCertificate": "maintenance.erasure.certificate",
    "CatalogTransaction": "operations.catalog_transaction",
    "CommitResult": "operations.staging.result",
    "StagedWrite": "operations.staged_write",
    "Transaction": "operations.transaction",
    "ScanExplanation": "scan.explain",
    "ScanPlan": "scan.plan",
    "Scan": "scan.scan",
    "read_metadata": "catalogs.static_table",
    "Table": "table",
    "Bound": "range_partitions.model",
    "RangePartitions": "range_partitions.model",
    "bound": "range_partitions.model",
    "list_partitions": "range_partitions.model",
    "OpenTelemetryReporter": "reports.open_telemetry",
    "StagedFiles": "write.staged",
    "serve": "server.running",
}


def __getattr__(name: str) -> Any:
    import gc
    from importlib import import_module

    home = "engines.duckdb" if name == "duckdb" else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tableformat' has no attribute {name!r}")
    # The garbage collector would repeatedly walk the objects that modules consist of, and none of them is garbage
    # (decision 37). Freezing and thawing moves them to the oldest generation. Objects that a program has frozen itself
    # are thawed too.
    was_on = gc.isenabled()
    gc.disable()
    try:
        module = import_module(f"tableformat.{home}")
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
    value: Any = module if name == "duckdb" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
