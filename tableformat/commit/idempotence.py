"""Exactly-once commits: each batch of a named writer is committed once, no matter how often it is retried.

CP-14: the last batch of a writer on a ref is a table property that is set in the same commit as the snapshot of the
batch, so it outlives the snapshot. Whole-number batch ids increase: a batch with an id at or below the stored one is
already applied. Any other id is already applied if it equals the stored one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from tableformat.errors import InvalidArgumentError
from tableformat.properties import TRANSACTION_PREFIX

BatchId: TypeAlias = int | str

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,100}")
_READABLE: Final = " -_.~/:@+=,;!$&'()*[]{}"


@dataclass(frozen=True, slots=True)
class AppliedBatch:
    """The table's record of the last batch of a writer."""

    batch_id: BatchId
    snapshot_id: int
    """The snapshot that committed the batch; it may have expired."""
    time_ms: int
    """The time of the commit, in milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class BatchName:
    """A writer and one of its batches."""

    application_id: str
    batch_id: BatchId


def batch_name(application_id: str | None, batch_id: BatchId | None) -> BatchName | None:
    """The name of a batch as given by the caller, or None. Giving only one of the two values is an error."""
    if application_id is None and batch_id is None:
        return None
    if application_id is None or not isinstance(application_id, str) or not application_id:
        raise InvalidArgumentError(
            "batch_id needs application_id: text that identifies the writer and stays the same on retries."
        )
    if batch_id is None:
        raise InvalidArgumentError(f"application_id {application_id!r} needs batch_id, which identifies this batch.")
    if isinstance(batch_id, bool) or not isinstance(batch_id, int | str) or batch_id == "":
        raise InvalidArgumentError(f"batch_id must be a whole number or text, not {batch_id!r}.")
    return BatchName(application_id, batch_id)


def property_name(ref: str, application_id: str) -> str:
    """`tableformat.txn.<ref>.<application_id>`. Dots of the ref and unprintable characters are percent-encoded, so two
    pairs never share a name."""
    return f"{_ref_prefix(ref)}{quote(application_id, safe=_READABLE)}"


def applied_batch(properties: Mapping[str, str], ref: str, application_id: str) -> AppliedBatch | None:
    """The last batch of the writer on the ref, as recorded in the table properties."""
    name = property_name(ref, application_id)
    text = properties.get(name)
    return None if text is None else _parse(name, text)


def is_applied(stored: AppliedBatch | None, batch_id: BatchId) -> bool:
    """CP-14: whether the batch is at or below the stored one (whole numbers), or equal to it (all other ids)."""
    if stored is None:
        return False
    stored_number, number = _whole_number(stored.batch_id), _whole_number(batch_id)
    if stored_number is not None and number is not None:
        return number <= stored_number
    return stored.batch_id == batch_id


def remember_batch(ref: str, name: BatchName, snapshot_id: int, time_ms: int) -> dict[str, str]:
    """The property to set in the commit of the batch."""
    value = {"batch-id": name.batch_id, "snapshot-id": snapshot_id, "time-ms": time_ms}
    return {property_name(ref, name.application_id): json.dumps(value)}


def remembered_batches(properties: Mapping[str, str], ref: str) -> dict[str, AppliedBatch]:
    """The last batch of every writer that committed to the ref: application id -> last batch."""
    prefix = _ref_prefix(ref)
    return {
        unquote(name[len(prefix) :]): _parse(name, text) for name, text in properties.items() if name.startswith(prefix)
    }


def batches_of_snapshots(properties: Mapping[str, str], ref: str, snapshot_ids: Collection[int]) -> list[str]:
    """Property names of the batches that the snapshots committed, for a rollback after which they will be replayed."""
    return [
        property_name(ref, application_id)
        for application_id, batch in remembered_batches(properties, ref).items()
        if batch.snapshot_id in snapshot_ids
    ]


def _ref_prefix(ref: str) -> str:
    return f"{TRANSACTION_PREFIX}{quote(ref, safe='-_/').replace('.', '%2E')}."


def _whole_number(batch_id: BatchId) -> int | None:
    if isinstance(batch_id, int):
        return batch_id
    return int(batch_id) if _WHOLE_NUMBER.fullmatch(batch_id) else None


def _parse(name: str, text: str) -> AppliedBatch:
    try:
        value = json.loads(text)
        batch_id, snapshot_id, time_ms = value["batch-id"], int(value["snapshot-id"]), int(value["time-ms"])
        if not isinstance(batch_id, int | str):
            raise TypeError(f"batch-id {batch_id!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"table property {name!r} is not a valid batch record: {text!r}. Remove the property to forget the writer."
        ) from error
    return AppliedBatch(batch_id, snapshot_id, time_ms)
