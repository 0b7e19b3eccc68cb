"""Finds the rows of a batch that deletes reach: values in, positions or masks out.

`range_match` finds the rows that lie in spans: by binary search where they are sorted, else by a trie of the boundaries
(`boundary_trie`). `equality` matches rows with keys of equality deletes (`key_index`): by their places in an array
where they are numbers that lie close together (`key_box`), else in a table of their hashes (`key_table`, `key_hashes`),
where values decide what hashes leave open (DA-4, DA-5).
"""
