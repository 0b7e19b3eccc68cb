"""Delete files: equality, position and range deletes, and deletion vectors.

Each kind has a module that writes the file and its manifest entry. `row_deletes` chooses the form of position deletes
that the table's format version requires.
"""
