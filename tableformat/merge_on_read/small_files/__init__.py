"""Resolves the deletes of many small data files together (decision 16): their concatenated keys against all deletes.

`batches` chooses the files. `KeyRows` is a file with its delete columns in memory. `joint_spans` and `joint_equality`
match rows of many files in one pass, and `JointResolver` returns the deleted positions of each file. It uses the same
cache as files that are resolved one by one, and gives the same result. The package imports the modules of merge_on_read
and lower layers.
"""
