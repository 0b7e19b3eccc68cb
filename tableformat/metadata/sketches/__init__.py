"""Theta sketches: how many distinct values a column has, in a few kilobytes, as Iceberg's statistics files have it."""
