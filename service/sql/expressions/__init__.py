"""What typed expressions are made of, in DuckDB text: types and their rules, casts, literals, time zones."""
