"""How a job runs: where its tasks are done, how it reports progress, how it commits at the head.

`tasks` are plain data with a function, run in threads here or by `SparkRunner` on executors; `executors` chooses;
`progress` is the callback; `head_jobs` replans on each lost race.
"""
