"""The demo: a stream of messages that each replace all rows of their business key.

`messages` generates them, and `stream_spark` and `stream_local` are the two writers. `run` checks that every reader
returns the same rows, and reports the cost. The demo uses only the public API of the library.
"""
