"""What exists, changed: `TableRangePartitions` lists range partitions, adds, drops, splits and merges them (RP-8)."""
