"""Relocation: rewrites the paths in a table's metadata without a new snapshot (LK-6 to LK-8).

`Naming` maps each location to its new one. `manifest_paths` rewrites manifests and their lists, `delete_files` rewrites
delete files that contain paths, `metadata_file` rewrites the table metadata. `relocate_table` relocates one table in an
order that can be interrupted, and `FileCopier` copies the files that do not change.
"""
