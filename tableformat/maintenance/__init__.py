"""Jobs that change how a snapshot is stored and never which rows it has (`specs/maintenance.md`).

`Maintenance` is the door, `run_jobs` runs all of them in a safe order. One folder a job or family: `conversion`,
`compaction`, `delete_files`, `publishing`, `expiry`, `health`, `verification`; `upkeep` does some of it after commits,
and `running` is where their tasks run. All take `dry_run` and `progress` and commit through `commit`. Imports commit,
write, scan and below.
"""
