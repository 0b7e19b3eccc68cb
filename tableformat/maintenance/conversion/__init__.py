"""Conversion of equality and range deletes to position deletes or deletion vectors, which other engines read.

`conversion_plan` slices the data files, `convert_files` is the task that runs anywhere, `convert_deletes` commits
slice by slice and drops what no data file needs; `conversion_record` remembers how far it got (MT-13 to MT-17).
"""
