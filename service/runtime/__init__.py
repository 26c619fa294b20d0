"""The interpreter of a program, shared by both runners: what a task does where rows enter, and what a shard does."""
