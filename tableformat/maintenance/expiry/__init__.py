"""expiry."""
