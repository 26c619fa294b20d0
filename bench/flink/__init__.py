"""Apache Flink as a neighbour: its archives, its launch, and the small Java programs that run SQL on it."""
