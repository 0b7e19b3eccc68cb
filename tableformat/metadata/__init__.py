"""The contents of Iceberg table metadata, as frozen data.

`DataFile` and `DeleteFile` are the files in manifests. `SnapshotView` is one pinned snapshot of one table;
`snapshot_choice` finds it by name, id or time. `manifests` has the codec. The package does not decide which delete
applies to which data file. It imports storage and errors.
"""
