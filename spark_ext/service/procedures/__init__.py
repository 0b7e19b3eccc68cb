"""What CALL runs: one module a subject, each procedure a function that says its own parameters and columns."""
