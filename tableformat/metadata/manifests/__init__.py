"""Manifests and manifest lists, of any writer and of format versions 1 to 3.

`avro_container` reads and writes the file, `manifest_schema` knows its fields by id, `manifest_reader` returns
`ManifestEntry` objects with inherited sequence numbers, `manifest_writer` writes our manifests. Decoded manifests are
kept in a bounded cache, because they never change. `specs/decisions` explains why the codec is our own.
"""
