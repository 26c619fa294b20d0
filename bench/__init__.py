"""Benchmarks against Flink SQL and native Spark, and the comparison of answers with Flink's."""
