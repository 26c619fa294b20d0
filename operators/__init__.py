"""What a stream computation means: pure kernels over Arrow tables, without Spark, Kafka or a clock of their own."""
