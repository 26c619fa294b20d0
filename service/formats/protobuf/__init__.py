"""Protocol Buffers: records of a message type, read and written a field at a time over whole blocks."""
