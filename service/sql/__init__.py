"""From a pipeline file to plan nodes."""
