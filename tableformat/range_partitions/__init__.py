"""Range partitions: which ranges of the key space exist (RP-1 to RP-20).

`RangePartitions` is what users write, `DefinedPartitions` the same bound to a schema; all else is functions over that.
"""
