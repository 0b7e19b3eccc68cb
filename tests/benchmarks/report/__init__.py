"""One report of what tables cost, ours beside others: `make bench-report`, which is `python -m report.run`.

`systems` are tables of each project in a process of its own; `workloads` put the same questions to them in turns;
`expected` knows every answer beforehand; `figures` is what was measured; `rendering` makes Markdown and plots of it.

A figure is CPU and wall time of one call, taken in the process that does the work. Systems take turns, call by call, so
that what else the machine does falls on all of them; what is compared are ratios of CPU time. An answer that is not the
expected one ends the system's part in the workload, and the report says so.
"""
