"""A program in this process, without Kafka or a JVM: for `tailrace test` and for tests of our own."""
