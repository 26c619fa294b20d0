-- Shipments with the time of each.
CREATE TABLE shipments (
  order_id BIGINT,
  carrier BIGINT,
  ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '${SHIPMENTS}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = '${FROM}',
  'scan.bounded.mode' = '${UNTIL}',
  'format' = 'json'
);
