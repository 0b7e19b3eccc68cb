"""Statistics files: data about a snapshot for query optimizers that its manifests do not contain."""
