"""Resolves a name such as `db.t.branch_x`, options of a read, or bounds of a range to a snapshot."""
