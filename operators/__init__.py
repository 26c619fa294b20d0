"""Pure kernels of a stream computation over Arrow tables, without Spark, Kafka or a clock of their own."""
