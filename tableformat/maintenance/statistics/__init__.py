"""Statistics files: what optimizers of engines ask of a snapshot beside what its manifests say."""
