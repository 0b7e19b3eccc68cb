"""Publish targets: a branch that follows the converted state of another one.

`publish_scope` says which commits of the target the source branch lacks, `carry_appends` copies appends made on the
target to the source branch, with their sequence numbers, and `lost_deletes` finds deletes that left before they met
these rows. The job itself is `maintenance/publish.py`.
"""
