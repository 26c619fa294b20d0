"""OVER windows: aggregates over the frame of each row."""
