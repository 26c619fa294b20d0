-- Where the rows of a change stream come from: what Debezium says beside them.

SHOW TABLES;
USE default_database;
SET 'taskmanager.memory.process.size' = '4g';
DROP TABLE IF EXISTS orders;

CREATE TABLE orders (
  id INT,
  read_at TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL,
  changed_at TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  origin STRING METADATA FROM 'value.source.database' VIRTUAL,
  properties MAP<STRING, STRING> METADATA FROM 'value.source.properties' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE seen (
  id INT,
  read_at TIMESTAMP_LTZ(3),
  changed_at TIMESTAMP_LTZ(3),
  origin STRING,
  snapshot STRING
) WITH ('connector' = 'kafka', 'topic' = 'seen', 'format' = 'changelog-json', 'sink.partitioner' = 'round-robin');

INSERT INTO seen SELECT id, read_at, changed_at, origin, properties['snapshot'] FROM orders;
