"""Data files rewritten: small and overlapping ones together, deleted rows out, the same rows in the same order of
deletes.

`compaction_plan` is what to rewrite and why, `compaction_choice` chooses by cost from `compaction_statistics`; a
group is read as `alive_batches`, merged by key in bounded memory (`sorted_merge`) and written by `group_output`.
"""
