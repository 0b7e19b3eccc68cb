"""data_files."""
