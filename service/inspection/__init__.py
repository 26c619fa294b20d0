"""Looking into a checkpoint without its pipeline: which batches it has, and the state after each."""
