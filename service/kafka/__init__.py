"""Kafka: topics and offsets, security, the local broker, and the exactly-once writer."""
