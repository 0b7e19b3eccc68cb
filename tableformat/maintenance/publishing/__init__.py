"""Publish targets: a branch that follows the converted state of another branch.

`publish_scope` finds the commits of the target that the source branch lacks. `carry_appends` copies appends made on the
target to the source branch, with their sequence numbers. `lost_deletes` finds deletes that were removed before they
reached these rows. The job itself is `maintenance/publish.py`.
"""
