"""The forms that changes have on the wire: a module for each shape, which reads it and writes it."""
