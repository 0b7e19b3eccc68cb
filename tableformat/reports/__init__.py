"""Reports of scans and commits in the form of Iceberg's REST specification, for metrics and traces.

`report` has the reports, `reporting` the registered reporters, `open_telemetry` turns reports into spans and metrics.
The package imports nothing above metadata.
"""
