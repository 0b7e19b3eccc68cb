"""Exactly-once commits: each batch of a named writer is committed one time, however often it is retried.

CP-14: the last batch of a writer on a ref is a table property, set in the same commit as the batch's snapshot, so it
outlives the snapshot. Whole-number batch ids rise: one at or below the stored id is applied. Other ids are applied when
they are equal.
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
    """What the table remembers of a writer's last batch."""

    batch_id: BatchId
    snapshot_id: int
    """The snapshot that committed it; expired, possibly."""
    time_ms: int
    """When, in milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class BatchName:
    """A writer and one of its batches."""

    application_id: str
    batch_id: BatchId


def batch_name(application_id: str | None, batch_id: BatchId | None) -> BatchName | None:
    """The name of a batch as the caller gave it, or None when it gave none. One without the other is an error."""
    if application_id is None and batch_id is None:
        return None
    if application_id is None or not isinstance(application_id, str) or not application_id:
        raise InvalidArgumentError(
            "batch_id needs application_id: text that names the writer and stays the same on retries."
        )
    if batch_id is None:
        raise InvalidArgumentError(f"application_id {application_id!r} needs batch_id, the name of this batch.")
    if isinstance(batch_id, bool) or not isinstance(batch_id, int | str) or batch_id == "":
        raise InvalidArgumentError(f"batch_id must be a whole number or text, not {batch_id!r}.")
    return BatchName(application_id, batch_id)


def property_name(ref: str, application_id: str) -> str:
    """`tableformat.txn.<ref>.<application_id>`; dots of the ref and unprintable characters are percent-encoded, so two
    pairs never share a name."""
    return f"{_ref_prefix(ref)}{quote(application_id, safe=_READABLE)}"


def applied_batch(properties: Mapping[str, str], ref: str, application_id: str) -> AppliedBatch | None:
    """What the table remembers of the writer on the ref."""
    name = property_name(ref, application_id)
    text = properties.get(name)
    return None if text is None else _parse(name, text)


def is_applied(stored: AppliedBatch | None, batch_id: BatchId) -> bool:
    """CP-14: at or below for whole numbers, equal for anything else."""
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
    """All writers that committed batches on the ref: application id -> last batch."""
    prefix = _ref_prefix(ref)
    return {
        unquote(name[len(prefix) :]): _parse(name, text) for name, text in properties.items() if name.startswith(prefix)
    }


def batches_of_snapshots(properties: Mapping[str, str], ref: str, snapshot_ids: Collection[int]) -> list[str]:
    """Property names of the batches that the snapshots committed, for a rollback that wants them replayed."""
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
            f"table property {name!r} holds {text!r}, which is no record of a batch. Remove the property to forget "
            "the writer."
        ) from error
    return AppliedBatch(batch_id, snapshot_id, time_ms)
