"""What the catalog asks of Python: one module an area, each method registered under the name that Java calls it by."""
