"""Operators that work row by row or key by key: projection, union, and the changelogs of sources and sinks."""
