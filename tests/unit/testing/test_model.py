"""The rules of the in-memory table that other tests compare with."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tableformat.errors import (
    AlreadyExistsError,
    DuplicateKeyError,
    InvalidArgumentError,
    InvalidKeyError,
    SnapshotNotFoundError,
    UnknownColumnError,
)
from tableformat.testing.key_order import event_sort_key, is_covered
from tableformat.testing.model import ModelClause, ModelTable

COLUMNS = ("id", "n", "v")


def row(id_: Any, n: Any, v: Any = None) -> dict[str, Any]:
    return {"id": id_, "n": n, "v": v}


def model_with(*rows: dict[str, Any]) -> ModelTable:
    model = ModelTable(COLUMNS, key=("id", "n"))
    model.append(rows)
    return model


def ids(model: ModelTable, branch: str = "main") -> list[Any]:
    return [each["id"] for each in model.rows(branch)]


@pytest.mark.parametrize(
    ("lower", "upper", "covered"),
    [
        (None, None, [None, "", "a", "a\0", "b"]),
        (None, ("a",), [None, ""]),
        (("",), None, ["", "a", "a\0", "b"]),
        ((None,), ("",), [None]),
        (("a",), ("a\0",), ["a"]),
        (("a",), ("b",), ["a", "a\0"]),
        (("a",), ("a",), []),
    ],
)
def test_range_includes_lower_and_excludes_upper_bound(
    lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None, covered: list[Any]
) -> None:
    """RD-1: before(lower) .. before(upper); an open lower end takes null in."""
    assert [value for value in [None, "", "a", "a\0", "b"] if is_covered((value,), lower, upper)] == covered


def test_operation_creates_a_snapshot_and_older_ones_keep_their_rows() -> None:
    model = model_with(row("a", 1), row("b", 1))
    model.delete_prefix({"id": "a"})
    model.append([row("a", 2)])
    assert ids(model) == ["b", "a"]
    assert [each["id"] for each in model.rows_at(1)] == ["a", "b"]
    assert [each["id"] for each in model.rows_at(2)] == ["b"]
    assert list(model.ancestors(model.head())) == [3, 2, 1]


def test_prefix_matches_whole_values_and_null() -> None:
    """RD-5, DA-4."""
    model = model_with(row("a", 1), row("ab", 1), row(None, 1), row("a\0", 1))
    model.delete_prefix([{"id": "a"}, {"id": None}])
    assert ids(model) == ["ab", "a\0"]
    with pytest.raises(InvalidKeyError):
        model.delete_prefix({"n": 1})
    with pytest.raises(InvalidKeyError):
        model.delete_prefix({})


def test_range_on_any_columns_rejects_invalid_bounds() -> None:
    model = model_with(row("a", 1, 5.0), row("b", 2, math.nan), row("c", 3))
    with pytest.raises(InvalidKeyError):
        model.delete_range(on=["v"], lower=(2.0,), upper=(1.0,))
    with pytest.raises(InvalidKeyError):
        model.delete_range(lower=("a", 1, 2))
    with pytest.raises(InvalidKeyError):
        model.delete_range(lower=())
    with pytest.raises(UnknownColumnError):
        model.delete_range(on=["w"], everything=True)
    with pytest.raises(InvalidArgumentError, match="everything"):
        model.delete_range()
    assert model.head() == 1, "a verb that fails makes no snapshot"
    model.delete_range(on=["v"], lower=(math.nan,))
    assert ids(model) == ["a", "c"]


def test_duplicate_key_without_order_raises_error() -> None:
    """CP-66, CP-67"""
    model = model_with(row("a", 1, "old"), row("b", 1, "kept"))
    given = [row("a", 1, "first"), row("c", 1, "new"), row("a", 1, "last")]
    with pytest.raises(DuplicateKeyError):
        model.upsert(given)
    model.upsert([{**each, "at": at} for each, at in zip(given, [1, None, 2], strict=True)], order_by="at")
    assert [each["v"] for each in model.rows()] == ["kept", "new", "last"]


def test_duplicates_are_allowed_refused_skipped_or_replaced() -> None:
    model = model_with(row("a", 1, "old"))
    with pytest.raises(DuplicateKeyError):
        model.append([row("b", 1), row("b", 1)], on_duplicate="error")
    model.append([row("a", 1, "skipped"), row("b", 1, "first"), row("b", 1, "skipped")], on_duplicate="ignore")
    assert [each["v"] for each in model.rows()] == ["old", "first"]
    model.append([row("a", 1, "new")], on_duplicate="replace")
    assert [each["v"] for each in model.rows()] == ["first", "new"]
    model.append([row("a", 1, "twice")])
    assert [each["v"] for each in model.rows()] == ["first", "new", "twice"]


def test_last_event_of_a_key_wins_by_order_then_position() -> None:
    model = model_with(row("a", 1, "old"), row("b", 1, "old"))
    events = [
        {**row("a", 1, "late"), "_op": "U", "_ts": 2},
        {**row("a", 1, "early"), "_op": "U", "_ts": 1},
        {"id": "b", "n": 1, "_op": "D", "_ts": None},
        {**row("c", 1, "first"), "_op": "insert", "_ts": 1},
        {**row("c", 1, "second"), "_op": "update", "_ts": 1},
    ]
    model.apply_changes(events)
    assert {(each["id"], each["v"]) for each in model.rows()} == {("a", "late"), ("c", "second")}
    assert (
        event_sort_key({"_ts": None}, "_ts")
        < event_sort_key({"_ts": math.nan}, "_ts")
        < event_sort_key({"_ts": -1.0}, "_ts")
    )


def test_events_require_a_key_and_a_known_operation() -> None:
    """CF-9."""
    with pytest.raises(InvalidKeyError):
        ModelTable(("id", "v")).apply_changes([{"id": 2, "v": "y", "_op": "I"}], order_by=None)
    with pytest.raises(InvalidArgumentError, match="not an operation"):
        model_with().apply_changes([{**row("b", 1), "_op": "X"}], order_by=None)


def test_transaction_operations_apply_in_order() -> None:
    model = model_with(row("a", 1))
    with model.transaction() as transaction:
        transaction.append([row("b", 1, "before")])
        transaction.delete_range(everything=True)
        transaction.append([row("b", 1, "after")])
    assert [each["v"] for each in model.rows()] == ["after"]
    assert model.head() == 2


def test_failed_transaction_changes_nothing() -> None:
    model = model_with(row("a", 1))

    def fail() -> None:
        with model.transaction() as transaction:
            transaction.overwrite([])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ids(model) == ["a"]


def test_rolled_back_batch_is_applied_again_only_with_replay() -> None:
    model = model_with(row("a", 1))
    model.append([row("b", 1)], application_id="stream", batch_id=1)
    model.rollback(1)
    assert model.append([row("b", 1)], application_id="stream", batch_id=1)
    model.append([row("c", 1)], application_id="stream", batch_id=2)
    model.rollback(1, replay=True)
    assert not model.append([row("c", 1)], application_id="stream", batch_id=2)
    assert ids(model) == ["a", "c"]


def test_unknown_names_and_snapshots_raise_errors() -> None:
    model = ModelTable(COLUMNS)
    with pytest.raises(SnapshotNotFoundError):
        model.create_tag("start")
    model.append([row("a", 1)])
    model.create_branch("side")
    with pytest.raises(AlreadyExistsError):
        model.create_tag("side")
    with pytest.raises(SnapshotNotFoundError):
        model.rows("other")
    with pytest.raises(SnapshotNotFoundError):
        model.rows_at(9)
    with pytest.raises(SnapshotNotFoundError):
        model.rows_of_tag("other")
    model.append([row("b", 1)], branch="side")
    with pytest.raises(InvalidArgumentError, match="ancestor"):
        model.rollback(2)
    with pytest.raises(InvalidKeyError):
        model.upsert([row("a", 1)])


def test_merge_applies_the_first_matching_clause() -> None:
    """CP-28: a second match is an error unless all that match go."""
    model = model_with(row("a", 1, 10), row("b", 1, 20), row("c", 1, 30))
    by_id = {"matches": lambda target, source: target["id"] == source["id"]}
    clauses = [
        ModelClause("matched", None, lambda _target, source: source["v"] is None),
        ModelClause("matched", lambda target, source: {"v": target["v"] + source["v"]}),
        ModelClause("not_matched", lambda _target, source: source, lambda _target, source: source["n"] == 5),
        ModelClause("not_matched_by_source", lambda _target, _source: {"v": 0}),
    ]
    model.merge([row("a", 5, 1), row("b", 5), row("d", 5, 4), row("e", 6, 4)], **by_id, clauses=clauses)
    assert [tuple(each.values()) for each in model.rows()] == [("a", 1, 11), ("c", 1, 0), ("d", 5, 4)]
    with pytest.raises(DuplicateKeyError):
        model.merge([row("a", 5, 1), row("a", 6, 1)], **by_id, clauses=clauses)
    model.merge([row("a", 5), row("a", 6)], **by_id, clauses=[ModelClause("matched", None)])
    assert ids(model) == ["c", "d"]
