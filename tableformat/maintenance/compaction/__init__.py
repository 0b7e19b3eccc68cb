"""Compaction: rewrites small and overlapping data files into sorted files without deleted rows. The live rows do not
change.

`compaction_plan` describes which files to rewrite and why. `compaction_choice` chooses them by cost from
`compaction_statistics`. A group is read as `alive_batches`, merged by key in bounded memory (`sorted_merge`) and
written by `group_output`.
"""
