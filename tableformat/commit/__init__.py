"""Commits changes as snapshots: conflict rules, retries, exactly-once (`specs/commit-protocol.md`).

A `TableChange` says what one commit adds and removes and what it took for granted. `commit_change` attempts it on the
head of a branch: `conflicts` asks whether others made it wrong, `SnapshotProducer` writes manifests, the catalog
decides the race. Imports merge_on_read and metadata; verbs and jobs are above.
"""
