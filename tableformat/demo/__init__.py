"""The demo: a stream of messages, each of which replaces all rows of its business key.

`messages` makes them up, `stream_spark` and `stream_local` are the two writers, `run` asks every reader for the same
rows and reports what it cost. Uses the library as any user does.
"""
