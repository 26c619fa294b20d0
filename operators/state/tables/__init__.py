"""State tables: what an operator remembers, by how it asks for it. Each is a trace, whose insides they hide.

An operator describes its tables by values (name, columns, keys, time to live), from which `specs_of` makes the traces,
and reads and writes rows through them. That keys share a hash, that a row notes when it was written, that a deleted row
leaves a tombstone, and that blocks are merged, is known here and nowhere else.
"""
