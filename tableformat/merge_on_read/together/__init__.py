"""Small data files resolved together (decision 16): the keys of many files end to end, against all their deletes.

`batches` says which files these are. `KeyRows` is a file with its delete columns in memory, `joint_spans` and
`joint_equality` match rows of many files in one pass, `JointResolver` gives the deleted positions of each, through the
cache that files have that are resolved alone, and with the same answer. Imports the modules of merge_on_read beside it
and below.
"""
