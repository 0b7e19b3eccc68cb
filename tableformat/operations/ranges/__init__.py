"""What exists, changed: `TableRangePartitions` adds, drops, splits, merges, moves windows and retires (RP-8)."""
