"""Range deletes as spans between cuts, and the algebra of spans.

A cut is a boundary between keys (RD-1). A `CutArray` has many cuts, and a `SpanArray` has many spans with their
sequence numbers. `skyline` computes the newest span at every point (RD-9). `coverage` decides from bounds whether a
data file is clean, covered or partial (RD-10). `needed_spans` finds the spans that can still delete a row. Everything
is numpy over ranks or encoded cuts, without a loop over rows.
"""
