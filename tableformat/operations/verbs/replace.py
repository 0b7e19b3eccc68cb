"""`replace`: replace all rows of a key prefix, without reading any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tableformat.keys.key_columns import leading_columns
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete_prefix import stage_prefixes
from tableformat.write.rows.distinct import PrefixCollector, distinct_rows, rows_among
from tableformat.write.rows.replacing_rows import ReplacingRows, covered_prefixes, order_columns
from tableformat.write.rows.rows import as_reader
from tableformat.write.rows.unique_keys import with_unique_keys


def replace(
    draft: Draft,
    *,
    rows: Any,
    prefix: Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    cover: Any = None,
    on_refused: str = "fail",
) -> None:
    """Stage the rows, and the delete of every prefix that occurs in them; `prefix` defaults to the whole key.

    CP-66: with `order_by` only the newest rows of each prefix count, and markers add no row. `cover`: prefixes that
    are deleted in any case. CP-67: DuplicateKeyError where two rows have one key.

    Rows and delete carry one sequence number, and RD-2 is strict, so the new rows stay. A diverted row takes all rows
    of its prefix along, whose old rows stay (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    names = leading_columns(draft.key_names, prefix if prefix is not None else draft.key_names)
    covered = None if cover is None else covered_prefixes(cover, names, draft.schema)
    draft.begin_verb()
    chosen = ReplacingRows(
        as_reader(rows, schema=arrow_schema(draft.schema)),
        draft.schema,
        key=draft.key_names,
        prefix=names,
        order_by=order_columns(order_by, names),
        memory_bytes=draft.context.memory_bytes // 4,
    )
    conformed = draft.conformed(chosen.to_reader(), on_refused, whole_groups=names, numbered_by=chosen.numbered_by)
    collector = PrefixCollector(conformed.schema, names)
    unique = with_unique_keys(conformed, draft.key_names, table=draft.name, memory_bytes=draft.context.key_memory_bytes)
    memory_bytes = draft.context.memory_bytes // 2 if order_by else None
    draft.add_rows(conformed, collector.through(unique), memory_bytes=memory_bytes)
    marked = chosen.marked
    if marked is not None and conformed.spoiled_groups is not None:
        marked = marked.filter(pa.array(~rows_among(marked, conformed.spoiled_groups)))
    found = [each for each in (collector.prefixes, marked, covered) if each is not None and each.num_rows]
    if found:
        stage_prefixes(draft, found[0] if len(found) == 1 else distinct_rows(pa.concat_tables(found)))
