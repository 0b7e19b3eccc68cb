"""Looks for the rows of an erasure (MT-119)."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table import Table as IcebergTable

from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.erasure.certificate import ErasureCertificate
from tableformat.maintenance.erasure.leftovers import unnamed_traces
from tableformat.maintenance.erasure.proof import prove
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.maintenance.running.progress import Progress
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.metadata.identifiers import identifier_text


def erased_flaws(iceberg: IcebergTable, erased: ErasureCertificate, progress: Progress | None = None) -> Iterator[Flaw]:
    """A flaw for each file and entry that has the scope of the certificate in this table.

    Raises InvalidArgumentError for a certificate without this table, and for one of a dry run.
    """
    metadata, io = iceberg.metadata, iceberg.io
    of_table = [each for each in erased.tables if each.table_uuid == str(metadata.table_uuid)]
    if not of_table or erased.dry_run:
        why = "is of a dry run, which erased nothing" if erased.dry_run else "is about other tables"
        raise InvalidArgumentError(f"the certificate {why}. Verify {identifier_text(iceberg.name())} with its own.")
    for each in of_table:
        scope = ErasureScope.from_json(each.scope, metadata.schema())
        found = prove(metadata, iceberg.metadata_location, io, scope, progress).found
        traces = unnamed_traces(metadata, iceberg.metadata_location, io, scope)
        for trace in (*found, *traces):
            yield Flaw(FindingKind.ERASED_ROWS, trace.location, trace.reason)
