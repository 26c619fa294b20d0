"""From a parsed scalar expression to a typed one: columns, literals, calls of functions by their name and types."""
