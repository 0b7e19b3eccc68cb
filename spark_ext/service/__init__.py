"""The Python side of the Spark catalog: one module for each area, methods registered under the names that Java calls.

`registry` finds the method, `session` remembers the catalog, tables and plans between calls, `wire` is how values
travel. `reads`, `writes`, `ddl`, `streams`, `changes` and `procedures` each answer one kind of question; `states`
says which snapshot a name or option means. The format's logic stays in `tableformat`.
"""
