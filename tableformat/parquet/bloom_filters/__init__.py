"""Bloom filters of column chunks (FM-27): which ones a writer makes, and what those of any writer rule out.

Arrow writes them and cannot look values up in them, so that is done here: `xxhash64` hashes a value in the bytes that
its file stores (`stored_form`), `probe` says which bits of a filter the value has set, `filter_bytes` reads a filter or
single blocks of it, and `held_filters` keeps those of small files, where a plan can ask all of them at once.
`filter_options` turns table properties into what writers are told. Source: the Parquet format, "Parquet Bloom Filter".
"""
