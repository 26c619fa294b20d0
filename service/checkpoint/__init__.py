"""State as files in the checkpoint: the blocks and manifests that tasks write, and the versions that list the valid
ones."""
