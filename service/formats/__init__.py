"""Formats: records of Kafka to blocks of rows, and blocks to records."""
