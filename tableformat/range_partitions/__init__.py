"""Range partitions: which ranges of the key space exist (RP-1 to RP-20).

Users write `RangePartitions`. `DefinedPartitions` is the same definition bound to a schema. Everything else consists of
functions on it.
"""
