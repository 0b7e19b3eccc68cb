"""Delete files as values: their content, their rules and the rows that match, without access to data files.

`rules` has one predicate for each rule of application (DA-1 to DA-3, RD-2, RD-3). `spans` is the algebra of range
deletes, `codecs` has the file formats, and `matching` finds the deleted rows. The result is always a `PositionSet`.
This package opens no data file. It imports metadata, keys and packages below them.
"""
