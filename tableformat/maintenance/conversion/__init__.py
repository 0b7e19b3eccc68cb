"""Conversion of equality and range deletes to position deletes or deletion vectors, which other engines read.

`conversion_plan` divides the data files into slices. `convert_files` is the task, which can run in any process.
`convert_deletes` commits one slice at a time and drops the deletes that no data file needs. `conversion_record` records
the progress (MT-13 to MT-17).
"""
