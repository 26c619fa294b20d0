-- Payments as they are read, as changes.
CREATE TABLE results (
  id BIGINT,
  account BIGINT,
  amount DOUBLE
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'debezium-json'
);
