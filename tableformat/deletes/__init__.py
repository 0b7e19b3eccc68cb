"""Delete files as values: their content, their rules and the rows that match, without access to data files.

`rules` has one predicate for each rule of application (DA-1 to DA-3, RD-2, RD-3). `spans` is the algebra of range
deletes, `codecs` the files, `matching` finds the rows that are deleted, and all of it ends as a `PositionSet`.
Nothing here opens a data file. Imports metadata, keys and below.
"""
