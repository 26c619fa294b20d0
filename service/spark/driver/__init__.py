"""The JVM and its settings, and the processes beside it."""
