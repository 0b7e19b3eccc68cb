"""Tools for tests of this library and of code that builds on it: strategies, an in-memory model table, the corpus
runner."""
