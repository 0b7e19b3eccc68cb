"""Jobs on delete files that open no data file: dead ones are dropped, small ones merged.

`dead_deletes` proves that a delete file matches nothing (MT-10), `drop_dead_deletes` takes such files away,
`merge_range_deletes` and `rewrite_position_deletes` make few files of many.
"""
