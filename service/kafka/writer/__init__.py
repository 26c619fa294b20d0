"""The exactly-once writer: one small process per host and query that holds a transactional producer per partition.

A task sends its rows to that process over a Unix socket (`client`). The rows and a marker, which names the batch, are
committed in one Kafka transaction (`partition_writer`); a repeated task finds the marker and writes nothing.
"""
