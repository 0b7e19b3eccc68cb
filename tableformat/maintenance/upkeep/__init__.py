"""Upkeep: automatic maintenance of a table that is being written to (MT-80 to MT-89).

`policy` reads the settings from the table's properties, `ledger` counts the writes since the last upkeep, and `rounds`
runs one round of jobs. `background` is the thread that runs rounds concurrently with the writer, and every commit of
the library calls `after_commit`. Upkeep runs jobs of `maintenance` by their rules, so it changes no row.
"""
