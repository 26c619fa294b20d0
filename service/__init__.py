"""Tailrace: streaming SQL from Kafka to Kafka, exactly once."""

__version__ = "0.1.0"
