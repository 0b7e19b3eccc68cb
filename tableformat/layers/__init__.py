"""The layers of a snapshot as a picture: the key space across, sequence numbers up, from metadata alone.

`collect` gathers the files of a snapshot as spans on an axis, `bands` arranges them within a bounded size, `svg` and
`text` draw them. `Layers` holds all of it for the one who asked.
"""
