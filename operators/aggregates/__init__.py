"""Aggregate functions, their accumulators, and GROUP BY without a window."""
