"""Theta sketches: how many distinct values a column has, in a few kilobytes, as Iceberg's statistics files have it.

`value_bytes` gives the values of a column in Iceberg's single-value serialization, `murmur3` hashes them, and
`theta_sketch` keeps the smallest hashes and stores them as DataSketches does (decision 26). Whole columns at once.
"""
