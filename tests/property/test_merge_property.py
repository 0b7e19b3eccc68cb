"""Merges of random rows into random files give the rows of the in-memory table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import given, settings
from hypothesis import strategies as st

from tableformat.errors import DuplicateKeyError
from tableformat.testing.key_order import Row, fingerprint
from tableformat.testing.model import ModelClause, ModelTable

pytestmark = pytest.mark.slow
SCHEMA: Final = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("v", pa.int64())])
NAMES: Final = SCHEMA.names


def _equal(*names: str) -> Callable[[Row, Row], bool]:
    return lambda target, source: all(target[name] is not None and target[name] == source[name] for name in names)


CONDITIONS: Final[list[tuple[Any, Callable[[Row, Row], bool]]]] = [
    (["id", "n"], _equal("id", "n")),
    ("id", _equal("id")),
    ("target.v = source.v AND target.id < 5", lambda t, s: _equal("v")(t, s) and t["id"] < 5),
    ("target.id > source.id", lambda t, s: t["id"] > s["id"]),
]
PREDICATES: Final[list[tuple[str | None, Callable[[Row, Row], bool] | None]]] = [
    ("source.v > 2", lambda _t, s: s["v"] is not None and s["v"] > 2),
    ("source.n = 1", lambda _t, s: s["n"] == 1),
    (None, None),
]
OF_TARGET: Final[list[tuple[str | None, Callable[[Row, Row], bool] | None]]] = [
    ("target.v IS NULL", lambda t, _s: t["v"] is None),
    ("target.n = 1", lambda t, _s: t["n"] == 1),
    (None, None),
]


def _sum(target: Row, source: Row) -> Row:
    total = None if None in (target["v"], source["v"]) else target["v"] + source["v"]
    return {"v": total}


CHANGES: Final[dict[str, list[tuple[str, list[Any], Callable[[Row, Row], Row] | None]]]] = {
    "matched": [
        ("when_matched_update", [{"v": "target.v + source.v"}], _sum),
        ("when_matched_update", [{"v": "source.v"}], lambda _t, s: {"v": s["v"]}),
        ("when_matched_delete", [], None),
    ],
    "not_matched": [
        ("when_not_matched_insert_all", [], lambda _t, s: s),
        ("when_not_matched_insert", [{"id": "source.id + 50", "n": 0}], lambda _t, s: {"id": s["id"] + 50, "n": 0}),
    ],
    "not_matched_by_source": [
        ("when_not_matched_by_source_update", [{"v": "target.v * 2"}], lambda t, _s: {"v": t["v"] and t["v"] * 2}),
        ("when_not_matched_by_source_delete", [], None),
    ],
}
ROWS: Final = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.none() | st.integers(0, 5)), min_size=1, max_size=5
)


@st.composite
def clauses(draw: st.DrawFn) -> list[tuple[str, list[Any], ModelClause]]:
    """Up to two clauses of each kind; only the last one has no predicate."""
    found = []
    for when, changes in CHANGES.items():
        predicates = OF_TARGET if when == "not_matched_by_source" else PREDICATES
        chosen = draw(st.lists(st.sampled_from(predicates), max_size=2, unique_by=lambda each: str(each[0])))
        for text, applies in sorted(chosen, key=lambda each: each[0] is None):
            method, arguments, new = draw(st.sampled_from(changes))
            found.append((method, [*arguments, text], ModelClause(when, new, applies)))
    return found


def rows_of(values: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in values]


@given(
    files=st.lists(ROWS, min_size=1, max_size=4),
    gone=st.integers(0, 9),
    source=ROWS,
    condition=st.sampled_from(CONDITIONS),
    chosen=clauses(),
    partitioned=st.booleans(),
)
@settings(max_examples=examples(0.3))
def test_merge_agrees_with_the_model(
    files: list[Any], gone: int, source: list[Any], condition: Any, chosen: Any, partitioned: bool
) -> None:
    """CP-28, CP-29: pruned by bounds, keys and partitions or not, every row gets its clause."""
    if not chosen:
        return
    model = ModelTable(NAMES, key=["id", "n"])
    with fast_lake() as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], partition_by=["n"] if partitioned else [])
        for number, rows in enumerate(files):
            table.append(pa.Table.from_pylist(rows_of(rows), SCHEMA))
            model.append(rows_of(rows))
            if number == 0:
                table.delete_prefix({"id": gone})
                model.delete_prefix({"id": gone})
        merge = table.merge(pa.Table.from_pylist(rows_of(source), SCHEMA), on=condition[0])
        for method, arguments, _ in chosen:
            getattr(merge, method)(*arguments)
        try:
            model.merge(rows_of(source), matches=condition[1], clauses=[clause for _, _, clause in chosen])
        except DuplicateKeyError:
            with pytest.raises(DuplicateKeyError):
                merge.execute()
        else:
            merge.execute()
        found = table.refresh().scan().to_arrow().to_pylist()
        assert fingerprint(found, NAMES) == fingerprint(model.rows(), NAMES)
