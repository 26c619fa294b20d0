-- The results of each account, with changes.
CREATE TABLE results (
  account BIGINT,
  n BIGINT,
  total DOUBLE
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'debezium-json'
);
