"""Avro: records of a schema, read and written a column at a time over whole blocks."""
