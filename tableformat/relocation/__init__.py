"""Relocation: a table's metadata says another place, without a new snapshot (LK-6 to LK-8).

`Naming` says what each location becomes; `manifest_paths` rewrites manifests and their lists, `delete_files` what has
paths inside, `metadata_file` the table metadata; `relocate_table` does one table in the order in which it can be
interrupted, and `FileCopier` brings along the files that stay as they are.
"""
