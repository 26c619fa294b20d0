"""What a streaming query is made of: source, levels, sink, and what runs in its tasks."""
