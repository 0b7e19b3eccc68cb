"""Storage of immutable files by location, on any file system or object store.

`storage` reads, writes and removes files by location: local files through the operating system, all others through
PyIceberg's FileIO. `location` compares spellings of a location, `listing` lists the files below a location, and
`location_provider` chooses the locations of new files. `LoadingCache` and `BoundedCache` keep what was read, up to a
number of bytes. The package imports only the errors of this library.
"""
