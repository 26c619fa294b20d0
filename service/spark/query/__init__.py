"""The parts of a streaming query: source, levels, sink, and what runs in its tasks."""
