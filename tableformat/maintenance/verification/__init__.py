"""Whether a table is what its metadata says: every file, count, bound, order and checksum.

`verify` asks everything and gives a `VerifyResult`; `repair` mends what loses nothing. `census` reads the manifests of
all snapshots once, `metadata_checks` and `snapshot_checks` look at what they state, `stored_files` at sizes,
`data_rows` and `delete_contents` at what is inside. `remedies` says what to do about each finding.
"""
