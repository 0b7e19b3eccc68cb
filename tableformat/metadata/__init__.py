"""What the Iceberg specification stores about a table, as frozen data.

`DataFile` and `DeleteFile` are what a manifest names, `SnapshotView` is one snapshot of one table, pinned;
`snapshot_choice` finds it by name, id or time. `manifests` has the codec. Which delete applies to which data file is
not decided here. Imports storage and errors.
"""
