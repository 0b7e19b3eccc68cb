"""Manifests and manifest lists, of any writer and of format versions 1 to 3.

`avro_container` reads and writes the file, `manifest_schema` knows its fields by id, `manifest_reader` gives
`ManifestEntry` with inherited sequence numbers, `manifest_writer` writes ours. Decoded manifests are kept in a
bounded cache, since they never change. `specs/decisions` says why the codec is ours.
"""
