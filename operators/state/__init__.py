"""State: traces of immutable sorted blocks, how rows are found in them, and how they are compacted."""
