"""CSV: one record a row, its columns by position."""
