"""Upkeep: a table that is written to keeps itself in shape (MT-80 to MT-89).

`policy` is what the table's properties ask for, `ledger` what was written since the last time, `rounds` what is done at
once, `background` the thread that does it beside the writer, and `after_commit` what every commit of the library asks.
Runs jobs of `maintenance`, whose rules hold: an upkeep changes no row.
"""
