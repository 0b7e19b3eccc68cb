"""Writes: what executors have to know, what they report, and the commit that follows.

`write_plan` is decided once on the driver, `task_reports` are what tasks hand back, `commits` makes one snapshot of
them; `deletes` and `whole_files` are statements that need no Spark job.
"""
