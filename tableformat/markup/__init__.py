"""Formats figures as text and parts of pages as HTML, for notebooks and reports, without scripts or external resources.

`figures` formats numbers, `html` makes grids and lists of facts in which every value is escaped, and `HtmlResult`
displays the fields of a result. The package does not depend on tables.
"""
