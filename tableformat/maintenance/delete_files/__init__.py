"""Jobs on delete files that open no data file: they drop dead files and merge small ones.

`dead_deletes` proves that a delete file matches no row (MT-10), and `drop_dead_deletes` removes such files.
`merge_range_deletes` and `rewrite_position_deletes` merge many files into few.
"""
