"""For columns of all types: operations, jobs and readers give the rows of a dictionary."""

from __future__ import annotations

import tempfile

import pytest
from every_type import JOBS, READERS, VERBS, schemas, typed_table, widest_schema
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema

VERSIONS = st.sampled_from([2, 3])


def try_everything(version: int, schema: Schema, seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = typed_table(directory, schema, version, seed)
        for step in (*VERBS, *READERS, *JOBS, *READERS):
            step(table)
            table.check()


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_table_with_all_column_types(version: int) -> None:
    try_everything(version, widest_schema(version), seed=version)


@settings(max_examples=examples(0.04), deadline=None)
@given(VERSIONS.flatmap(lambda version: st.tuples(st.just(version), schemas(version))), st.integers(0, 2**32))
def test_table_with_random_column_types(of: tuple[int, Schema], seed: int) -> None:
    try_everything(*of, seed)
