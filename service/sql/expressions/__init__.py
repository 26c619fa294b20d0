"""Scalar expressions: types, casts, literals and calls, compiled to DuckDB text."""
