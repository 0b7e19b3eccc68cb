"""Delete files: equality, position and range deletes, and deletion vectors.

Each kind is one module that writes one kind of file and its manifest entry; `row_deletes` chooses the form of deletes
by position that the table's format version asks for.
"""
