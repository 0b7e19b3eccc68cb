"""Table health: what slows reads down, and the job recommended for each finding.

`health_statistics` measures from metadata alone, `health_findings` compares with thresholds and recommends, `health`
has the report as data.
"""
