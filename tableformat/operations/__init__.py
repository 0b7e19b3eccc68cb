"""Operations of users on a table: reads and writes of rows, transactions, refs, keys, metadata tables.

`verbs` has one module for each operation, `merging` the parts of a merge. An operation finds affected rows with
`row_lookup` and stages its changes in a draft (`staging`), which becomes one snapshot. `evolution` changes the
definition of the table, `history` its branches and tags, `ranges` its range partitions. `transaction` combines several
operations in one snapshot, and `staged_write` commits files that other processes wrote. The package imports commit,
write, scan and lower packages.

The handle of a table takes operations from this package, which imports the module of a name when the name is first
used: most processes use few of them (decision 37).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tableformat.operations.evolution.check_constraints import add_check, drop_check
    from tableformat.operations.evolution.key import set_key
    from tableformat.operations.evolution.merged_schema import merge_columns
    from tableformat.operations.evolution.schema_updates import SchemaChanges, SpecChanges
    from tableformat.operations.history import references
    from tableformat.operations.history.consumers import TableConsumers, consumer_of
    from tableformat.operations.history.empty_branch import create_empty_branch
    from tableformat.operations.inspect import Inspect
    from tableformat.operations.ranges.handle import TableRangePartitions
    from tableformat.operations.row_lookup.lookup import row_of_key, rows_of_keys
    from tableformat.operations.staged_write import StagedWrite, stage_written
    from tableformat.operations.staging.covered_positions import find_here
    from tableformat.operations.staging.draft import Draft
    from tableformat.operations.staging.estimate import EstimatingDraft, estimate_verb
    from tableformat.operations.staging.run import dry_run_verb, held, is_one_shot, repeatable, run_verb
    from tableformat.operations.table_page import table_html
    from tableformat.operations.transaction import Transaction
    from tableformat.operations.verbs.add_files import add_files
    from tableformat.operations.verbs.append import append
    from tableformat.operations.verbs.apply_changes import apply_changes
    from tableformat.operations.verbs.delete import delete
    from tableformat.operations.verbs.delete_prefix import delete_prefix
    from tableformat.operations.verbs.delete_range import delete_range
    from tableformat.operations.verbs.delete_ranges import delete_ranges
    from tableformat.operations.verbs.delete_rows import delete_rows
    from tableformat.operations.verbs.overwrite import overwrite
    from tableformat.operations.verbs.replace import replace
    from tableformat.operations.verbs.replace_interval import replace_interval, replace_partition
    from tableformat.operations.verbs.upsert import upsert

__all__ = [
    "Draft",
    "EstimatingDraft",
    "Inspect",
    "SchemaChanges",
    "SpecChanges",
    "StagedWrite",
    "TableConsumers",
    "TableRangePartitions",
    "Transaction",
    "add_check",
    "add_files",
    "append",
    "apply_changes",
    "consumer_of",
    "create_empty_branch",
    "delete",
    "delete_prefix",
    "delete_range",
    "delete_ranges",
    "delete_rows",
    "drop_check",
    "dry_run_verb",
    "estimate_verb",
    "find_here",
    "held",
    "is_one_shot",
    "merge_columns",
    "overwrite",
    "references",
    "repeatable",
    "replace",
    "replace_interval",
    "replace_partition",
    "row_of_key",
    "rows_of_keys",
    "run_verb",
    "set_key",
    "stage_written",
    "table_html",
    "upsert",
]

_HOMES: Final = {
    "Draft": "staging.draft",
    "EstimatingDraft": "staging.estimate",
    "Inspect": "inspect",
    "SchemaChanges": "evolution.schema_updates",
    "SpecChanges": "evolution.schema_updates",
    "StagedWrite": "staged_write",
    "TableConsumers": "history.consumers",
    "TableRangePartitions": "ranges.handle",
    "Transaction": "transaction",
    "add_check": "evolution.check_constraints",
    "add_files": "verbs.add_files",
    "append": "verbs.append",
    "apply_changes": "verbs.apply_changes",
    "consumer_of": "history.consumers",
    "create_empty_branch": "history.empty_branch",
    "delete": "verbs.delete",
    "delete_prefix": "verbs.delete_prefix",
    "delete_range": "verbs.delete_range",
    "delete_ranges": "verbs.delete_ranges",
    "delete_rows": "verbs.delete_rows",
    "drop_check": "evolution.check_constraints",
    "dry_run_verb": "staging.run",
    "estimate_verb": "staging.estimate",
    "find_here": "staging.covered_positions",
    "held": "staging.run",
    "is_one_shot": "staging.run",
    "merge_columns": "evolution.merged_schema",
    "overwrite": "verbs.overwrite",
    "references": "history.references",
    "repeatable": "staging.run",
    "replace": "verbs.replace",
    "replace_interval": "verbs.replace_interval",
    "replace_partition": "verbs.replace_interval",
    "row_of_key": "row_lookup.lookup",
    "rows_of_keys": "row_lookup.lookup",
    "run_verb": "staging.run",
    "set_key": "evolution.key",
    "stage_written": "staged_write",
    "table_html": "table_page",
    "upsert": "verbs.upsert",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tableformat.operations' has no attribute {name!r}")
    module = import_module(f"tableformat.operations.{home}")
    value: Any = module if name == "references" else getattr(module, name)
    globals()[name] = value
    return value
