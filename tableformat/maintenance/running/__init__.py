"""How a job runs: where its tasks are executed, how it reports progress, how it commits at the head.

`tasks` are plain data with a function, executed in threads of this process or by `SparkRunner` on Spark executors.
`executors` chooses the runner, `progress` is the callback, and `head_jobs` plans again after each lost race.
"""
