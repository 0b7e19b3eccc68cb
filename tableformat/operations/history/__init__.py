"""Moves branches and tags, and brings changes from elsewhere to a branch.

`references` moves tags, branches and properties and rolls back, without a snapshot. `cherrypick` applies to a branch
the change of a snapshot outside its history. `empty_branch` starts a branch of a table without snapshots. The package
imports commit and lower packages.
"""
