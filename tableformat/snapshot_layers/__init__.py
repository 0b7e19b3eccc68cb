"""Draws the layers of a snapshot: the key space from left to right, sequence numbers from bottom to top, from metadata.

`collect` gathers the files of a snapshot as spans on an axis, `bands` arranges them within a bounded size, `svg` and
`text` draw them. `Layers` is the result.
"""
