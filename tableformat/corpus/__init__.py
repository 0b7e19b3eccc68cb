"""The corpus for every reader: cases of the specification as Iceberg tables, and what a reader makes of them.

`cases` reads the cases of specs/corpus, `rules` the sentences that decide them, `write` makes the tables. `check` runs
a reader over them, `answers` compares what it printed with the rows that are expected, and `matrix` says so for many
readers at once. `readers` has readers of this project and of others: scripts that import nothing of this library.
"""
