"""Which snapshot of a table is meant: by a name such as `db.t.branch_x`, by options of a read, by bounds of a range."""
