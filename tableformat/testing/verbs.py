"""Operations as data: drawn once, and applied to a table, to a transaction and to the model, which must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from tableformat.operations.staging.result import CommitResult
from tableformat.operations.transaction import Transaction
from tableformat.table import Table
from tableformat.testing.key_order import Row, is_covered
from tableformat.testing.model import ModelClause, ModelVerbs
from tableformat.testing.strategies import KEY, Filter, Range, equal_rows, filters, prefixes, ranges, rows, table_of

_OPERATIONS: Final = (*("I", "U", "D", "update") * 3, "+U", "update_preimage", "truncate")


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """New values of some columns, in two forms."""

    assignments: Mapping[str, Any]
    """In the form for `update` and the clauses of `merge`."""
    new: Callable[[Row, Row], Row]
    """A function of the target's row and the source's row; the latter is empty in an update."""

    def __repr__(self) -> str:
        return str(dict(self.assignments))


@dataclass(frozen=True, slots=True, repr=False)
class MergeClause:
    """A clause of `merge`, in two forms."""

    method: str
    arguments: tuple[Any, ...]
    model: ModelClause

    def __repr__(self) -> str:
        return f"{self.method}{self.arguments}"


@dataclass(frozen=True, slots=True)
class Verb:
    """One call of a writing operation."""

    name: str
    """The method of Table, Transaction and ModelVerbs."""
    rows: tuple[Row, ...] = ()
    """Rows, events, keys or prefixes: the operation's table argument."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments with the same meaning for the table and the model."""
    where: Filter | None = None
    mode: str = "auto"
    """The form of a delete, which the model does not have."""
    is_streamed: bool = False
    """Whether rows come one by one from a reader that can be read once."""
    change: Change | None = None
    """For `update`."""
    clauses: tuple[MergeClause, ...] = ()
    """For `merge`, on the key."""
    cover: tuple[Row, ...] = ()
    """Additional prefixes that a `replace` deletes."""

    def numbered(self, numbers: Iterator[int]) -> Verb:
        """The operation with rows that no other call writes."""
        if self.name in ("delete_prefix", "delete_rows"):
            return self
        return replace(self, rows=tuple({**row, "row": next(numbers)} for row in self.rows))

    def apply_to_model(self, model: ModelVerbs) -> None:
        method = getattr(model, self.name)
        match self.name:
            case "delete":
                assert self.where is not None
                method(self.where.matches)
            case "delete_range":
                method(**self.options)
            case "overwrite":
                method(self.rows, where=None if self.where is None else self.where.matches, **self.options)
            case "update":
                assert self.where is not None
                assert self.change is not None
                new = self.change.new
                method(self.where.matches, new=lambda row: new(row, {}))
            case "merge":
                method(self.rows, matches=_has_key_of, clauses=[clause.model for clause in self.clauses])
            case "replace":
                method(self.rows, cover=self.cover, **self.options)
            case _:
                method(self.rows, **self.options)

    def apply_to_table(self, table: Table | Transaction) -> CommitResult | None:
        """Run it and return the table's result; None in a transaction."""
        method = getattr(table, self.name)
        result: CommitResult | None
        match self.name:
            case "delete":
                assert self.where is not None
                result = method(self.where.expression, mode=self.mode)
            case "delete_range":
                result = method(mode=self.mode, **self.options)
            case "delete_prefix":
                result = method(table_of(self.rows), mode=self.mode)
            case "overwrite":
                where = None if self.where is None else self.where.expression
                result = method(self._arrow(), where=where, **self.options)
            case "update":
                assert self.where is not None
                assert self.change is not None
                result = method(self.where.expression, set=dict(self.change.assignments))
            case "merge":
                statement = method(self._arrow(), on=list(KEY))
                for clause in self.clauses:
                    getattr(statement, clause.method)(*clause.arguments)
                result = statement.execute()
            case "replace":
                cover = {"cover": table_of(self.cover)} if self.cover else {}
                result = method(self._arrow(), **cover, **self.options)
            case _:
                result = method(self._arrow(), **self.options)
        return result

    def _arrow(self) -> pa.Table | pa.RecordBatchReader:
        events = {"_op": pa.string(), "_ts": pa.int64()}
        found = table_of([{name: row[name] for name in row if name not in events} for row in self.rows])
        for name, kind in events.items():
            if self.rows and name in self.rows[0]:
                found = found.append_column(name, pa.array([row[name] for row in self.rows], kind))
        if self.is_streamed:
            return pa.RecordBatchReader.from_batches(found.schema, found.to_batches(max_chunksize=1))
        return found


@st.composite
def verbs(draw: st.DrawFn) -> Verb:
    """Any operation; half of them add rows."""
    return draw(_VERBS)


def _row_writers() -> st.SearchStrategy[Verb]:
    """Operations that add rows. Some of them also delete."""
    appends = st.builds(lambda new: Verb("append", tuple(new)), rows())
    choosy = st.builds(
        lambda new, choice: Verb("append", tuple(new), {"on_duplicate": choice}),
        rows(max_size=2),
        st.sampled_from(["ignore", "error", "replace"]),
    )
    upserts = st.builds(
        lambda new, streamed: Verb("upsert", tuple(new), is_streamed=streamed), rows(), st.booleans()
    ) | _ordered_rows().map(lambda new: Verb("upsert", tuple(new), {"order_by": "_ts"}))
    overwrites = st.builds(
        lambda new, where: Verb("overwrite", tuple(new), {"allow_outside": True}, where=where),
        rows(max_size=2),
        filters() | filters() | st.none(),
    )
    return st.one_of(
        appends, choosy, _replacements(), upserts, _changes(), _interval_replacements(), overwrites, _merges()
    )


def _replacements() -> st.SearchStrategy[Verb]:
    """With and without an order, which the table does not store, and with markers."""
    plain = st.builds(
        lambda new, prefix: Verb("replace", tuple(new), {"prefix": prefix}),
        rows(max_size=3),
        st.sampled_from([KEY[:1], KEY]),
    )
    marked = st.builds(
        lambda row, is_marker: {**row, **(dict.fromkeys(KEY[1:]) if is_marker else {})}, _ordered_row(), st.booleans()
    )
    covers = st.lists(prefixes().map(lambda found: {KEY[0]: found[0][KEY[0]]}), max_size=1)
    ordered = st.builds(
        lambda new, cover: Verb("replace", tuple(new), {"prefix": KEY[:1], "order_by": ["_ts"]}, cover=tuple(cover)),
        st.lists(marked, min_size=1, max_size=4),
        covers,
    )
    return plain | ordered


def _ordered_row() -> st.SearchStrategy[Row]:
    return st.builds(lambda found, order: {**found[0], "_ts": order}, rows(max_size=1), st.sampled_from([None, 1, 2]))


def _ordered_rows() -> st.SearchStrategy[list[Row]]:
    return st.lists(_ordered_row(), min_size=1, max_size=4)


def _keyed_deletes() -> st.SearchStrategy[Verb]:
    """Deletes that are written as range or equality deletes."""
    by_prefix = st.builds(
        lambda found, mode: Verb("delete_prefix", tuple(found), mode=mode),
        prefixes(),
        st.sampled_from(["auto", "range", "equality"]),
    )
    by_range = st.builds(lambda found: Verb("delete_range", options=_range_options(found)), ranges())
    by_rows = st.builds(lambda found: Verb("delete_rows", tuple(found)), equal_rows())
    return st.one_of(by_prefix, by_range, by_rows)


def _scan_deletes() -> st.SearchStrategy[Verb]:
    """Deletes and updates that search for rows, or may have to."""
    mode = st.sampled_from(["auto", "scan"])
    by_filter = st.builds(lambda where, mode: Verb("delete", where=where, mode=mode), filters(), mode)
    by_range = st.builds(lambda found: Verb("delete_range", options=_range_options(found), mode="scan"), ranges())
    by_prefix = st.builds(lambda found: Verb("delete_prefix", tuple(found), mode="scan"), prefixes())
    return st.one_of(by_filter, by_filter, by_range, by_prefix, _updates())


def _has_key_of(target: Row, source: Row) -> bool:
    return all(target[name] == source[name] for name in KEY)


_UPDATES: Final = (
    Change({"note": "'b'"}, lambda *_: {"note": "b"}),
    Change({"at": None}, lambda *_: {"at": None}),
    Change({"note": "id", "row": "row + 1000"}, lambda row, _: {"note": row["id"], "row": row["row"] + 1000}),
)
_OF_MATCHED: Final = (
    Change(
        {"note": "source.note", "row": "source.row"}, lambda _, source: {"note": source["note"], "row": source["row"]}
    ),
    Change({"at": "target.at", "note": "source.id"}, lambda target, source: {"at": target["at"], "note": source["id"]}),
)
_TARGET_CONDITIONS: Final[tuple[tuple[str | None, Callable[[Row, Row], bool] | None], ...]] = (
    ("target.note IS NULL", lambda target, _: target["note"] is None),
    ("target.number >= 0", lambda target, _: target["number"] >= 0),
    (None, None),
)


def _updates() -> st.SearchStrategy[Verb]:
    return st.builds(
        lambda where, change: Verb("update", where=where, change=change), filters(), st.sampled_from(_UPDATES)
    )


@st.composite
def _merges(draw: st.DrawFn) -> Verb:
    """Merges whose source rows have distinct keys, so that none is rejected."""
    source = {tuple(row[name] for name in KEY): row for row in draw(rows(max_size=3))}
    clauses = []
    kind = draw(st.sampled_from(["update", "delete", "both", None]))
    text, applies = draw(st.sampled_from(_TARGET_CONDITIONS))
    if kind in ("update", "both"):
        change = draw(st.sampled_from(_OF_MATCHED))
        model = ModelClause("matched", change.new, applies)
        clauses.append(MergeClause("when_matched_update", (dict(change.assignments), text), model))
    if kind == "delete" or (kind == "both" and text is not None):
        clauses.append(MergeClause("when_matched_delete", (), ModelClause("matched", None)))
    if not clauses or draw(st.booleans()):
        model = ModelClause("not_matched", lambda _, source: source)
        clauses.append(MergeClause("when_not_matched_insert_all", (), model))
    if draw(st.integers(0, 3)) == 0:
        clauses.append(_of_rows_without_source(draw))
    return Verb("merge", tuple(source.values()), clauses=tuple(clauses))


def _of_rows_without_source(draw: st.DrawFn) -> MergeClause:
    text, applies = draw(st.sampled_from(_TARGET_CONDITIONS))
    if draw(st.booleans()):
        model = ModelClause("not_matched_by_source", None, applies)
        return MergeClause("when_not_matched_by_source_delete", (text,), model)
    model = ModelClause("not_matched_by_source", lambda *_: {"note": "b"}, applies)
    return MergeClause("when_not_matched_by_source_update", ({"note": "'b'"}, text), model)


def _changes() -> st.SearchStrategy[Verb]:
    event = st.builds(
        lambda row, operation, order: {**row, "_op": operation, "_ts": order},
        rows(max_size=1).map(lambda found: found[0]),
        st.sampled_from(_OPERATIONS),
        st.sampled_from([None, 1, 2]),
    )
    return st.lists(event, min_size=1, max_size=4).map(lambda events: Verb("apply_changes", tuple(events)))


def _interval_replacements() -> st.SearchStrategy[Verb]:
    return st.builds(_interval_replacement, rows(max_size=3), ranges(), st.integers(0, 9), st.booleans())


def _interval_replacement(new: Sequence[Row], found: Range, chance: int, blind: bool) -> Verb:
    """Mostly with rows inside the interval; a row outside is rejected."""
    inside = [row for row in new if is_covered(tuple(row[name] for name in found.on), found.lower, found.upper)]
    kept = inside if inside and chance else new
    return Verb("replace_interval", tuple(kept), {**_range_options(found), "blind": blind})


def _range_options(found: Range) -> dict[str, Any]:
    everything = found.lower is None and found.upper is None
    return {"on": found.on, "lower": found.lower, "upper": found.upper, "everything": everything}


_VERBS: Final = st.one_of(_row_writers(), _row_writers(), _keyed_deletes(), _scan_deletes())
