"""One report of the cost of table operations, in this library and in other projects: `make bench-report`, which is
`python -m report.run`.

`systems` has the tables of each project, each in its own process; `workloads` sends the same requests to them by turns;
`expected` knows every answer beforehand; `figures` holds the measurements; `rendering` turns them into Markdown and
plots.

A figure is the CPU and wall time of one call, measured in the process that does the work. Systems take turns after each
call, so that other load on the machine affects all of them; ratios of CPU time are compared. If an answer is wrong, the
system is removed from the workload, and the report says so.
"""
