"""catalogs."""
