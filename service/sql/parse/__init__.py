"""Parsing of text to statements: the dialect and its grammar."""
