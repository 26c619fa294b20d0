"""A broker of Apache Kafka as a local process."""
