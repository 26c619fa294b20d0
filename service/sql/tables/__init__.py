"""CREATE TABLE: columns, watermarks, keys, LIKE and metadata columns."""
