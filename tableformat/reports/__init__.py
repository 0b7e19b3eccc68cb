"""Reports of scans and commits, as Iceberg's REST specification has them, for whoever counts or traces them.

`report` has the reports, `reporting` who gets them, `open_telemetry` makes spans and metrics of them. Imports nothing
above metadata.
"""
