"""merge_on_read."""
