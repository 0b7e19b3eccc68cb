"""Jobs that change how a snapshot is stored, but never which rows it has (`specs/maintenance.md`).

`Maintenance` is the entry point, and `run_jobs` runs all jobs in a safe order. Each job or family of jobs has a
package: `conversion`, `compaction`, `delete_files`, `publishing`, `expiry`, `health`, `verification`. `upkeep` runs
some of them after commits, and `running` executes their tasks. All jobs take `dry_run` and `progress` and commit
through `commit`. The package imports commit, write, scan and lower layers.
"""
