"""The main job: a stream of messages, each of which replaces all rows of its business key."""
