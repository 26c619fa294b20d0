"""State as files in the checkpoint: blocks and manifests that tasks write, and which of them count after a batch."""
