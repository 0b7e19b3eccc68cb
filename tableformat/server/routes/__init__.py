"""The routes of Iceberg's REST specification, by the kind of thing that they change.

A module has a tuple `ROUTES`. A handler takes the server and a request, runs in a thread, and returns the answer or
raises an error that `answers.py` knows.
"""
