"""The command line `tableformat`: one module for each group of commands.

A command parses its arguments, calls one operation, job or scan, and passes the result to `display` or writes it as
JSON. Rows and documents go to stdout, everything else to stderr. Commands have no table logic of their own.
"""
