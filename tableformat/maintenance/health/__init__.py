"""Table health: the causes of slow reads, and a recommended job for each finding.

`health_statistics` measures from metadata alone. `health_findings` compares with thresholds and recommends jobs.
`health` has the report as data.
"""
