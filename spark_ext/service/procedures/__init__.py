"""Procedures that CALL runs: one module for each subject, each procedure a function with its parameters and columns."""
