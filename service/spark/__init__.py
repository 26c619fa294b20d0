"""The Spark runner: the only place that imports pyspark."""
