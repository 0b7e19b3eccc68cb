"""The change feed: which rows each snapshot of a range deleted and added."""
