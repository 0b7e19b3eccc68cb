"""What slows the reads of a table, and the job that mends each finding.

`health_statistics` measures from metadata alone, `health_findings` compares with thresholds and recommends, `health`
has the report as data.
"""
