"""The interpreter of a program, shared by both runners: what a task does where rows enter, and what a shard does.

`ingest` is level 0, `shard` a shard of a later level. An exchange between them is `topology` (which there are),
`partitioning` (which rows go to which shard), `envelope` (what travels) and `level_clock` (how a watermark crosses).
Event time is `asserted_watermarks` (what rows say), `partition_clocks` (how far a Kafka partition has come) and
`watermarks` (what follows for a level).
"""
