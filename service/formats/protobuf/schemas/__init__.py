"""Schemas of Protocol Buffers: what they declare, and which columns of SQL they fit."""
