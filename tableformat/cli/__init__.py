"""The command line `tableformat`: one module for each group of commands.

A command parses its arguments, calls one verb, job or scan, and hands the result to `display`, or writes it as JSON;
rows and documents go to stdout, everything else to stderr. No logic of tables is here.
"""
