-- Orders and their shipments, without event time.
CREATE TABLE orders (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  ms BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${ORDERS}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = '${FROM}',
  'scan.bounded.mode' = '${UNTIL}',
  'format' = 'json'
);
CREATE TABLE shipments (
  order_id BIGINT,
  carrier BIGINT,
  ms BIGINT
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
