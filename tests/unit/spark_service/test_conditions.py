"""The argument `where` of procedures."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_ext.service.procedures.conditions import condition
from tableformat import Catalog, open_catalog

SCHEMA = pa.schema(
    [("c1", pa.int64()), ("Dup", pa.int64()), ("dup", pa.int64()), ("s", pa.struct([("in", pa.string())]))]
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("C1 > 0", "c1 > 0"),
        ("c1 > 0 AND C1 < 5", "c1 > 0 AND c1 < 5"),
        ('S.IN = "a"', "s.in = 'a'"),
        ("DUP = 1", "DUP = 1"),
        ("dup = 1", "dup = 1"),
        ("nothing = 1", "nothing = 1"),
    ],
)
def test_names_are_spelled_as_the_table_spells_them(tmp_path: object, where: str, expected: str) -> None:
    """PR-8."""
    catalog: Catalog = open_catalog(str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    found = condition(where, table)
    assert found is not None
    assert found.replace('"', "") == expected
