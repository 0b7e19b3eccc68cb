"""Snapshots from changes: conflict rules, retries, exactly-once (`specs/commit-protocol.md`)."""
