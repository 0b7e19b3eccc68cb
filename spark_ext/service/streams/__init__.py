"""Streaming reads: where a stream begins, how far a micro-batch goes, and which files are in it.

`micro_batches` answers Spark, `stream_history` says which snapshots are still to be read, a `Part` is one snapshot or
one piece of it, and the offset is what Spark keeps in the checkpoint.
"""
