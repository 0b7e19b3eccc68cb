"""Snapshots from changes: conflict rules, retries, exactly-once (`specs/commit-protocol.md`)."""

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.delete_scope import only_default_spec_has_data
from tableformat.commit.transaction import CommitOutcome, commit_change

__all__ = ["ChangeKind", "CommitOutcome", "TableChange", "commit_change", "only_default_spec_has_data"]
