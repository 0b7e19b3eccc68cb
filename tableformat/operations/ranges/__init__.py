"""What exists, changed: `TableRangePartitions` defines, adds, drops, splits, merges, moves and retires (RP-8)."""
