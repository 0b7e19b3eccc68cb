"""Commits changes as snapshots: conflict rules, retries, exactly-once (`specs/commit-protocol.md`).

A `TableChange` lists the files that one commit adds and removes, and the state that it relies on. `commit_change`
attempts it on the head of a branch: `conflicts` checks whether concurrent commits made it invalid, `SnapshotProducer`
writes manifests, and the catalog decides which commit wins. The package imports merge_on_read and metadata; operations
and jobs import it.
"""
