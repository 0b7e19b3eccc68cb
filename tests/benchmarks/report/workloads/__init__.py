"""The workloads: one module for each, with a function that takes a `contest.Setting` and adds figures to it."""
