"""The corpus for every reader: cases of the specification as Iceberg tables, and the results of readers.

`cases` reads the cases of specs/corpus, `rules` reads the rules that decide them, and `write` makes the tables. `check`
runs a reader over the tables, `answers` compares its output with the expected rows, and `matrix` shows the results of
many readers. `readers` has readers of this project and of others, as scripts that import nothing of this library.
"""
