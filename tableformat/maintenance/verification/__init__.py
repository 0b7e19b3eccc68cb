"""Checks whether a table matches its metadata: every file, count, bound, order and checksum.

`verify` runs all checks and returns a `VerifyResult`; `repair` fixes everything that can be fixed without loss.
`file_index` reads the manifests of all snapshots once. `metadata_checks` and `snapshot_checks` check their contents,
`stored_files` checks sizes, `data_rows` and `delete_contents` check the contents of files. `repeated_keys` compares the
keys of live rows. `remedies` adds advice to each finding.
"""
