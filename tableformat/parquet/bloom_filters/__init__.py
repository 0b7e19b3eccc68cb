"""Bloom filters of column chunks (FM-27): which filters a writer creates, and what the filters of any writer exclude.

Arrow writes the filters but cannot look up values in them. `xxhash64` hashes a value in its stored bytes
(`stored_form`), `probe` computes the bits that a value sets, `filter_bytes` reads a filter or single blocks of it, and
`held_filters` caches the filters of small files, so that a plan can query all of them at once. `filter_options`
converts table properties to writer options. Source: the Parquet format, "Parquet Bloom Filter".
"""
