"""Writes: the input and the reports of executors, and the commit that follows.

`write_plan` is decided once on the driver, `task_reports` parses what tasks return, and `commits` creates one snapshot
from them. `deletes` and `whole_files` are for statements that need no Spark job.
"""
