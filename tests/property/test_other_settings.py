"""The same operations with other settings, and with jobs in between, give the same rows; no model is used."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import given, settings
from hypothesis import strategies as st
from soak_figures import count

import tableformat as tf
from tableformat.errors import DuplicateKeyError, InvalidArgumentError, RowsRefusedError
from tableformat.properties import BLIND_DELETES
from tableformat.testing.acts import Act, InTransaction, OneVerb, jobs
from tableformat.testing.machine import VARIANTS, Variant
from tableformat.testing.strategies import KEY, SCHEMA
from tableformat.testing.verbs import verbs

COPY_ON_WRITE: Final = {f"write.{statement}.mode": "copy-on-write" for statement in ("delete", "update", "merge")}
MORE_VARIANTS: Final = (
    *VARIANTS,
    Variant((), {"write.target-file-size-bytes": "1", "tableformat.write.memory-bytes": "1000000"}),
    Variant(("truncate(1, id)",), {"write.parquet.compression-codec": "snappy", "format-version": "3"}),
    Variant((), {"commit.manifest-merge.enabled": "false", "write.metadata.compression-codec": "gzip"}),
    Variant((), {"write.delete.blind": "off"}),
    Variant(("bucket(2, id)",), {"write.delete.blind": "equality", "format-version": "3"}),
    Variant((), COPY_ON_WRITE),
    Variant((), {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.id": "counts"}),
    Variant((), {**COPY_ON_WRITE, "format-version": "3", "write.parquet.row-group-limit": "1"}),
    Variant((), {"read.parquet.page-checksum-verification": "true", "commit.manifest.target-size-bytes": "1"}),
)
REFUSALS: Final = (DuplicateKeyError, InvalidArgumentError, RowsRefusedError)
ACTS: Final = st.lists(
    st.one_of(
        verbs().map(OneVerb), st.lists(verbs(), min_size=2, max_size=3).map(lambda made: InTransaction((*made,)))
    ),
    min_size=4,
    max_size=12,
)
"""Operations on one table, which are also run on the other one."""


@pytest.mark.slow
@settings(max_examples=examples(0.16))
@given(
    acts=ACTS,
    upkeep=st.lists(st.none() | jobs(), min_size=12, max_size=12),
    variants=st.lists(st.sampled_from(MORE_VARIANTS), min_size=2, max_size=2, unique_by=id),
)
def test_rows_do_not_depend_on_settings_or_jobs(
    acts: Sequence[Act], upkeep: Sequence[Act | None], variants: Sequence[Variant]
) -> None:
    """MT-1, FM-23: rejections, counts and change events do not depend on them either."""
    numbers = itertools.count()
    with fast_lake() as catalog:
        plain, kept = (
            catalog.create_table(
                f"db.t{place}", SCHEMA, key=KEY, partition_by=each.partition_by, properties=dict(each.properties)
            )
            for place, each in enumerate(variants)
        )
        for act, job in zip((each.numbered(numbers) for each in acts), upkeep, strict=False):
            count("operations", 2)
            assert refusal(plain, act) == refusal(kept, act)
            if job is not None:
                count("operations")
                job.commit(kept.refresh())
            assert rows_of(plain) == rows_of(kept)
            assert plain.refresh().scan().count() == kept.refresh().scan().count() == len(rows_of(kept))


def refusal(table: tf.Table, act: Act) -> str | None:
    """The kind of error that the act raises, or None if it succeeds. If the properties forbid the requested mode
    (SP-22), the operation chooses it."""
    if set(table.properties) & {BLIND_DELETES, *COPY_ON_WRITE}:
        chosen = tuple(replace(verb, mode="scan" if verb.mode == "scan" else "auto") for verb in act.verbs)
        act = OneVerb(*chosen) if isinstance(act, OneVerb) else InTransaction(chosen)
    try:
        act.commit(table.refresh())
    except REFUSALS as error:
        return type(error).__name__
    return None


def rows_of(table: tf.Table) -> list[str]:
    return sorted(map(repr, table.refresh().scan().to_arrow().to_pylist()))
