"""The command line `tableformat`."""
