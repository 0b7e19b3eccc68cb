"""Range deletes as spans between cuts, and the algebra on them.

A cut lies between keys (RD-1): `CutArray` holds many, a `SpanArray` is many spans with their sequence numbers.
`skyline` gives the newest span at every point (RD-9); `coverage` decides from bounds whether a data file is clean,
covered or partial (RD-10); `needed_spans` which spans can still delete a row. All of it is numpy over ranks or encoded
cuts; no loop over rows.
"""
