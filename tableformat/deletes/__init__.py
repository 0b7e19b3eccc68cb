"""Deletes as values: what a delete file says, without asking where its data files are.

`rules` has one predicate for each rule of application (DA-1 to DA-3, RD-2, RD-3). `spans` is the algebra of range
deletes, `codecs` the files, `matching` finds the rows that are deleted, and all of it ends as a `PositionSet`.
Nothing here opens a data file. Imports metadata, keys and below.
"""
