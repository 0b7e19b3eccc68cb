"""The Python side of the Spark catalog: one module for each area, with methods registered under the names that Java
calls.

`registry` finds the method, `session` keeps the catalog, tables and plans between calls, and `wire` converts values.
`reads`, `writes`, `ddl`, `streams`, `changes` and `procedures` each answer one kind of request. `states` resolves a
name or an option to a snapshot. The logic of the format stays in `tableformat`.
"""
