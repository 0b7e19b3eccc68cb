"""The procedures of CALL: one module for each subject, one function with parameters and columns for each procedure."""
