"""What exists, changed: `TableRangePartitions` adds, drops, splits, merges, moves windows, retires and restores (RP-8)."""
