"""delete_files."""
