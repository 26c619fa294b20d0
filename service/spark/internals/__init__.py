"""The private parts of Spark and py4j that this service uses; docs/design/internals.md lists them."""
