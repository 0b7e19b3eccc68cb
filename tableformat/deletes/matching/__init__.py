"""Finds the rows of a batch that deletes reach: values in, positions or masks out.

`range_match` finds the rows in spans: by binary search if the rows are sorted, otherwise with a trie of the boundaries
(`boundary_trie`). `equality` matches rows with keys of equality deletes (`key_index`). If the keys are numbers in a
narrow range, they are found by their index in an array (`key_box`). Otherwise they are found in a hash table
(`key_table`, `key_hashes`), which also compares values (DA-4, DA-5).
"""
