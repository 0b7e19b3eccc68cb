"""Erasure: removes rows from every snapshot of a table, together with all traces of their key (MT-111 to MT-119).

`scope` states the rows. `contents` reads what the snapshots name. `data_files`, `delete_files`, `metadata_texts` and
`history` write the files without the rows, `commit` sets the catalog to them, `erase` is the job. `proof` reads what
remains, and `certificate` states the result.
"""
