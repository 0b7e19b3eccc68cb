"""For tests of this library and of what builds on it: strategies, an in-memory model table, the corpus runner."""
