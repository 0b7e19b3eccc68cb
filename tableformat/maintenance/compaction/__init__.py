"""Compaction: rewrites small and overlapping data files into sorted ones without deleted rows; rows stay the same.

`compaction_plan` is what to rewrite and why, `compaction_choice` chooses by cost from `compaction_statistics`; a
group is read as `alive_batches`, merged by key in bounded memory (`sorted_merge`) and written by `group_output`.
"""
