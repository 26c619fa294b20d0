"""Translation of a pipeline file to plan nodes."""
