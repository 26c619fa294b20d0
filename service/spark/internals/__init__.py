"""What this service uses of Spark and py4j beyond their public interface: docs/design/internals.md lists it."""
