"""Storage of immutable files by location, on any file system or object store.

`storage` reads, writes and removes files by their location, local ones through the operating system and all others
through PyIceberg's FileIO; `location` compares the spellings of a location, `listing` says what a store holds below
one, `location_provider` where new files go. `LoadingCache` and `BoundedCache` keep what was read, within a number of
bytes. Imports errors alone.
"""
