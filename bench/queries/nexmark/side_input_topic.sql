-- The same in a topic: a table that q13 joins as it is when a bid comes.
CREATE TABLE side_input (
  key BIGINT,
  `value` VARCHAR,
  PRIMARY KEY (key) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = '${SIDE_INPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset',
  'format' = 'debezium-json'
);
