"""The formats of changes on the wire: a module for each shape, which reads and writes it."""
