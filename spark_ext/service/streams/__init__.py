"""Streaming reads: where a stream begins, where a micro-batch ends, and which files it contains.

`micro_batches` answers Spark, and `stream_history` lists the snapshots that remain to be read. A `Part` is one snapshot
or one piece of it. The offset is Spark's entry in the checkpoint.
"""
