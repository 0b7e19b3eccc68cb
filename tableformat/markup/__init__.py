"""Figures as text and parts of pages as HTML, for notebooks and reports: no script, nothing from elsewhere.

`figures` words numbers, `html` makes grids and lists of facts in which every value is escaped, `HtmlResult` shows the
fields of a result. Nothing here knows a table.
"""
