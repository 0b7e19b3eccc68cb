"""Where branches and tags point, and what a branch takes over from elsewhere.

`references` moves tags, branches and properties and rolls back, without a snapshot; `cherrypick` does to a branch what
a snapshot outside of its history did; `empty_branch` begins a branch of a table that has no snapshot. Imports commit
and below.
"""
