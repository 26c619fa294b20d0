"""Reading a checkpoint without its pipeline: its batches, and the state after each."""
