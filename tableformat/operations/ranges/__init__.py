"""Changes of range partitions: `TableRangePartitions` defines, adds, drops, splits, merges, moves and retires
(RP-8)."""
